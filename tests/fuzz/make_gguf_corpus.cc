// Writes the seeds of gguf_fuzz: every broken and every sound file of
// tests/support/gguf_mutations.h.
//
//   ninja make_gguf_corpus && bin/make_gguf_corpus tests/fuzz/corpus/gguf

#include <filesystem>
#include <fstream>
#include <iostream>

#include "tests/support/gguf_mutations.h"

namespace {

bool write(const std::filesystem::path& folder, const troupe::test::GgufMutation& mutation) {
  std::ofstream file(folder / (mutation.name + ".gguf"), std::ios::binary);
  file << mutation.bytes;
  return file.good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_gguf_corpus FOLDER\n";
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  std::filesystem::create_directories(folder);
  size_t count = 0;
  for (const auto& files : {troupe::test::gguf_mutations(), troupe::test::sound_gguf_files()}) {
    for (const troupe::test::GgufMutation& file : files) {
      if (!write(folder, file)) {
        std::cerr << file.name << " cannot be written to " << folder << "\n";
        return 1;
      }
      ++count;
    }
  }
  std::cout << count << " files in " << folder << "\n";
  return 0;
}
