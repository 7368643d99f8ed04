// Writes the models of tests/support/tiny_families.h, for tools/make_decoder_goldens.py.
//
//   ninja make_tiny_models && bin/make_tiny_models FOLDER

#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/support/tiny_families.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_tiny_models FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  std::filesystem::create_directories(folder);
  for (const troupe::test::TinyFamily& family : troupe::test::tiny_families()) {
    std::ofstream file(folder / (family.name + ".gguf"), std::ios::binary);
    file << troupe::test::make_tiny_model(family.options);
    if (!file.good()) {
      std::cerr << family.name << " cannot be written to " << folder << "\n";
      return 1;
    }
  }
  return 0;
}
