#include <iostream>

#include "apps/troupe/options.h"
#include "engine/model/gguf_file.h"
#include "engine/model/inspect.h"

namespace troupe {

int run_inspect(const std::string& model_path) {
  const auto file = GgufFile::open(model_path);
  if (!file.ok()) return fail(file.status());
  std::cout << inspect_text(*file.value());
  return 0;
}

}  // namespace troupe
