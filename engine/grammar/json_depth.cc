#include "engine/grammar/json_depth.h"

#include <algorithm>
#include <string>

#include "engine/grammar/limits.h"

namespace troupe {
namespace {

constexpr uint32_t kJsonLevelsMax = 2 * grammar_limits::kDepthMax + 8;

// Brackets outside strings; on text that is no JSON any number will do.
uint32_t depth_of(std::string_view text) {
  uint32_t depth = 0;
  uint32_t deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Result<nlohmann::ordered_json> parse_bounded_json(std::string_view text, std::string_view what) {
  const std::string name(what);
  if (text.size() > grammar_limits::kTextBytesMax) {
    return invalid_argument(name + " has " + std::to_string(text.size()) + " bytes, at most " +
                            std::to_string(grammar_limits::kTextBytesMax) + " are possible");
  }
  if (const uint32_t depth = depth_of(text); depth > kJsonLevelsMax) {
    return invalid_argument(name + " is nested " + std::to_string(depth) +
                            " levels deep, at most " + std::to_string(kJsonLevelsMax) +
                            " are possible");
  }
  auto json = nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return invalid_argument(name + " is not JSON");
  return json;
}

}  // namespace troupe
