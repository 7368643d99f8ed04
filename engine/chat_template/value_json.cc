#include "engine/chat_template/value_json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

// `depth_left` bounds the recursion.
Result<TemplateValue> convert(const Json& json, uint32_t depth_left,
                              const ChatTemplateLimits& limits) {
  switch (json.type()) {
    case Json::value_t::null:
      return TemplateValue::none();
    case Json::value_t::boolean:
      return TemplateValue::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return TemplateValue::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned: {
      const auto value = json.get<uint64_t>();
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        return TemplateValue::number(static_cast<double>(value));
      }
      return TemplateValue::integer(static_cast<int64_t>(value));
    }
    case Json::value_t::number_float:
      return TemplateValue::number(json.get<double>());
    case Json::value_t::string:
      return TemplateValue::data(json.get<std::string>());
    case Json::value_t::array:
    case Json::value_t::object:
      break;
    default:
      return invalid_argument("a chat template cannot use binary JSON values; send text instead");
  }
  if (depth_left == 0) {
    return invalid_argument("the JSON is nested deeper than value_depth_max = " +
                            std::to_string(limits.value_depth_max) + "; flatten it");
  }
  if (json.is_array()) {
    TemplateValue::List elements;
    elements.reserve(json.size());
    for (const Json& element : json) {
      TROUPE_ASSIGN_OR_RETURN(TemplateValue value, convert(element, depth_left - 1, limits));
      elements.push_back(std::move(value));
    }
    return TemplateValue::list(std::move(elements));
  }
  std::vector<std::pair<std::string, TemplateValue>> entries;
  entries.reserve(json.size());
  for (const auto& [key, element] : json.items()) {
    TROUPE_ASSIGN_OR_RETURN(TemplateValue value, convert(element, depth_left - 1, limits));
    entries.emplace_back(key, std::move(value));
  }
  return TemplateValue::dict(std::move(entries));
}

}  // namespace

Result<TemplateValue> template_value_from_json(const nlohmann::ordered_json& json,
                                               const ChatTemplateLimits& limits) {
  return convert(json, limits.value_depth_max, limits);
}

Result<TemplateValue> template_value_from_json_text(std::string_view text,
                                                    const ChatTemplateLimits& limits) {
  // Before anything is built: the library has no limit of its own.
  uint32_t depth = 0;
  bool is_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') is_string = !is_string;
    if (is_string && c == '\\') ++at;
    if (is_string) continue;
    if (c == '[' || c == '{') ++depth;
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (depth > limits.value_depth_max) {
      return invalid_argument("the JSON is nested deeper than value_depth_max = " +
                              std::to_string(limits.value_depth_max) + "; flatten it");
    }
  }
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return invalid_argument("the text is no JSON");
  return template_value_from_json(json, limits);
}

}  // namespace troupe
