#include <algorithm>
#include <array>

#include "engine/model/architectures/architecture.h"

namespace troupe {

std::span<const Architecture> architectures() {
  static const std::array kAll = {llama_architecture(), qwen2_architecture(), qwen3_architecture(),
                                  gemma3_architecture()};
  return kAll;
}

const Architecture* find_architecture(std::string_view name) {
  const auto all = architectures();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Architecture& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace troupe
