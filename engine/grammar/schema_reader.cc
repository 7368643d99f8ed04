#include "engine/grammar/schema_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/code_points.h"
#include "engine/grammar/limits.h"

namespace troupe {
namespace {

struct Keyword {
  std::string_view name;
  KeywordUse use;
  std::string_view advice = {};
};

using enum KeywordUse;

constexpr std::string_view kNoLogic = "say what is wanted with properties, enum and anyOf instead";
constexpr std::string_view kNoNames = "declare the properties by name";

// Of drafts 4 to 2020-12, and what generators of schemas add.
constexpr std::array kKeywords = {
    Keyword{"$schema", kAnnotation},
    Keyword{"$id", kAnnotation},
    Keyword{"id", kAnnotation},
    Keyword{"$comment", kAnnotation},
    Keyword{"$defs", kAnnotation},
    Keyword{"definitions", kAnnotation},
    Keyword{"title", kAnnotation},
    Keyword{"description", kAnnotation},
    Keyword{"default", kAnnotation},
    Keyword{"example", kAnnotation},
    Keyword{"examples", kAnnotation},
    Keyword{"deprecated", kAnnotation},
    Keyword{"readOnly", kAnnotation},
    Keyword{"writeOnly", kAnnotation},
    Keyword{"discriminator", kAnnotation},
    Keyword{"contentMediaType", kAnnotation},
    Keyword{"contentEncoding", kAnnotation},
    Keyword{"contentSchema", kAnnotation},
    Keyword{"type", kAnyType},
    Keyword{"enum", kAnyType},
    Keyword{"const", kAnyType},
    Keyword{"$ref", kAnyType},
    Keyword{"anyOf", kAnyType},
    Keyword{"oneOf", kAnyType},
    Keyword{"allOf", kAnyType},
    Keyword{"minLength", kString},
    Keyword{"maxLength", kString},
    Keyword{"pattern", kString},
    Keyword{"format", kString},
    Keyword{"minimum", kNumber},
    Keyword{"maximum", kNumber},
    Keyword{"exclusiveMinimum", kNumber},
    Keyword{"exclusiveMaximum", kNumber},
    Keyword{"multipleOf", kNumber},
    Keyword{"items", kArray},
    Keyword{"prefixItems", kArray},
    Keyword{"minItems", kArray},
    Keyword{"maxItems", kArray},
    Keyword{"properties", kObject},
    Keyword{"required", kObject},
    Keyword{"additionalProperties", kObject},
    Keyword{"minProperties", kObject},
    Keyword{"maxProperties", kObject},
    Keyword{"not", kUnsupported, kNoLogic},
    Keyword{"if", kUnsupported, kNoLogic},
    Keyword{"then", kUnsupported, kNoLogic},
    Keyword{"else", kUnsupported, kNoLogic},
    Keyword{"dependentRequired", kUnsupported, kNoLogic},
    Keyword{"dependentSchemas", kUnsupported, kNoLogic},
    Keyword{"dependencies", kUnsupported, kNoLogic},
    Keyword{"uniqueItems", kUnsupported, "leave it out and check the answer"},
    Keyword{"contains", kUnsupported, "describe the items by items or prefixItems"},
    Keyword{"minContains", kUnsupported, "use minItems"},
    Keyword{"maxContains", kUnsupported, "use maxItems"},
    Keyword{"additionalItems", kUnsupported, "use prefixItems and items"},
    Keyword{"unevaluatedItems", kUnsupported, "use prefixItems and items"},
    Keyword{"unevaluatedProperties", kUnsupported, "use additionalProperties"},
    Keyword{"patternProperties", kUnsupported, kNoNames},
    Keyword{"propertyNames", kUnsupported, kNoNames},
    Keyword{"nullable", kUnsupported, "add \"null\" to type, or use anyOf"},
    Keyword{"$anchor", kUnsupported, "refer by a path like #/$defs/name"},
    Keyword{"$dynamicRef", kUnsupported, "refer by a path like #/$defs/name"},
    Keyword{"$dynamicAnchor", kUnsupported, "refer by a path like #/$defs/name"},
    Keyword{"$recursiveRef", kUnsupported, "refer by a path like #/$defs/name"},
    Keyword{"$recursiveAnchor", kUnsupported, "refer by a path like #/$defs/name"},
    Keyword{"$vocabulary", kUnsupported, "leave it out"},
};

const Keyword* find_keyword(std::string_view name) {
  const auto* found = std::find_if(kKeywords.begin(), kKeywords.end(),
                                   [name](const Keyword& keyword) { return keyword.name == name; });
  return found == kKeywords.end() ? nullptr : found;
}

// A boolean false switches these keywords off, which is what leaving them out does.
bool is_switched_off(std::string_view keyword, const SchemaJson& value) {
  const bool is_switch =
      keyword == "uniqueItems" || keyword == "nullable" || keyword == "$recursiveAnchor";
  return is_switch && value.is_boolean() && !value.get<bool>();
}

struct TypeName {
  std::string_view name;
  uint8_t types;
};
constexpr std::array kTypeNames = {
    TypeName{"null", kTypeNull},       TypeName{"boolean", kTypeBoolean},
    TypeName{"integer", kTypeInteger}, TypeName{"number", kTypeInteger | kTypeFraction},
    TypeName{"string", kTypeString},   TypeName{"array", kTypeArray},
    TypeName{"object", kTypeObject},
};

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const auto [end, error] = std::from_chars(&text[i + 1], &text[i] + 3, byte, 16);
      if (error == std::errc{} && end == &text[i] + 3) {
        out.push_back(static_cast<char>(byte));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

std::string unescaped(std::string_view part) {
  std::string out;
  for (size_t i = 0; i < part.size(); ++i) {
    const bool is_escape = part[i] == '~' && i + 1 < part.size();
    if (is_escape && (part[i + 1] == '0' || part[i + 1] == '1')) {
      out.push_back(part[++i] == '0' ? '~' : '/');
    } else {
      out.push_back(part[i]);
    }
  }
  return out;
}

}  // namespace

// Names of properties are the client's: a path does not grow with them for ever.
SchemaPlace SchemaPlace::at(const std::string& key) const {
  constexpr size_t kPathBytesMax = 256;
  const SchemaJson& inner = value->at(key);
  if (path.size() >= kPathBytesMax) return {&inner, path};
  const std::string name = utf8_prefix(key, kQuotedBytesMax);
  return {&inner, path.empty() ? name : path + "." + name};
}

SchemaPlace SchemaPlace::at(size_t index) const {
  return {&value->at(index), path + "[" + std::to_string(index) + "]"};
}

std::string SchemaPlace::name() const {
  return path.empty() ? "$" : "$." + path;
}

Status schema_error(const SchemaPlace& place, const std::string& what) {
  return invalid_argument("the JSON schema at " + place.name() + ": " + what, place.path);
}

std::optional<KeywordUse> keyword_use(std::string_view keyword) {
  const Keyword* found = find_keyword(keyword);
  return found == nullptr ? std::nullopt : std::optional(found->use);
}

std::string_view keyword_advice(std::string_view keyword) {
  const Keyword* found = find_keyword(keyword);
  return found == nullptr ? std::string_view() : found->advice;
}

Status check_keywords(const SchemaPlace& place) {
  TROUPE_ASSERT(place.value->is_object(), place.path);
  for (const auto& [key, value] : place.value->items()) {
    const Keyword* keyword = find_keyword(key);
    if (keyword == nullptr) {
      if (key.starts_with("x-")) continue;  // an extension's own annotation
      return schema_error(place.at(key), "the keyword '" + utf8_prefix(key, kQuotedBytesMax) +
                                             "' is not known; leave it out");
    }
    if (keyword->use != kUnsupported || is_switched_off(key, value)) continue;
    return schema_error(place.at(key), "the keyword '" + key + "' is not supported; " +
                                           std::string(keyword->advice));
  }
  return ok_status();
}

Status check_beside(const SchemaPlace& place, std::string_view keyword,
                    std::initializer_list<std::string_view> allowed) {
  for (const auto& [key, value] : place.value->items()) {
    if (key == keyword || std::find(allowed.begin(), allowed.end(), key) != allowed.end()) continue;
    const Keyword* found = find_keyword(key);
    if (found == nullptr || found->use == kAnnotation || is_switched_off(key, value)) continue;
    return schema_error(place.at(key), "the keyword '" + key + "' is not supported beside '" +
                                           std::string(keyword) +
                                           "': move it into the schema that it belongs to");
  }
  return ok_status();
}

Result<double> read_number(const SchemaPlace& place) {
  if (!place.value->is_number()) return schema_error(place, "it must be a number");
  const double value = place.value->get<double>();
  if (!std::isfinite(value)) return schema_error(place, "the number is not finite");
  return value;
}

Result<uint32_t> read_count(const SchemaPlace& place, uint32_t least, uint32_t most) {
  TROUPE_ASSIGN_OR_RETURN(const double value, read_number(place));
  if (value != std::floor(value) || value < least || value > most) {
    return schema_error(place, "it must be a whole number from " + std::to_string(least) + " to " +
                                   std::to_string(most));
  }
  return static_cast<uint32_t>(value);
}

Result<SchemaPlace> resolve_ref(const SchemaJson& document, const SchemaPlace& ref) {
  if (!ref.value->is_string()) return schema_error(ref, "it must be a string");
  const auto& text = ref.value->get_ref<const std::string&>();
  const std::string shown = "'" + utf8_prefix(text, kQuotedBytesMax) + "'";
  if (text != "#" && !text.starts_with("#/")) {
    return schema_error(ref, "the reference " + shown +
                                 " leads out of this schema; only '#' and '#/…' are possible");
  }
  SchemaPlace place{&document, ""};
  const std::string pointer = percent_decoded(std::string_view(text).substr(1));
  for (size_t start = 1; start <= pointer.size();) {
    const size_t end = std::min(pointer.find('/', start), pointer.size());
    const std::string part = unescaped(std::string_view(pointer).substr(start, end - start));
    start = end + 1;
    if (place.value->is_object() && place.value->contains(part)) {
      place = place.at(part);
      continue;
    }
    size_t index = 0;
    const auto [last, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = error == std::errc{} && last == part.data() + part.size();
    if (!place.value->is_array() || !is_index || index >= place.value->size())
      return schema_error(ref, "the reference " + shown + " names nothing in this schema");
    place = place.at(index);
  }
  return place;
}

uint8_t type_of_value(const SchemaJson& value) {
  if (value.is_null()) return kTypeNull;
  if (value.is_boolean()) return kTypeBoolean;
  if (value.is_number_integer()) return kTypeInteger;
  if (value.is_number()) {
    const double number = value.get<double>();
    return number == std::floor(number) ? kTypeInteger : kTypeFraction;
  }
  if (value.is_string()) return kTypeString;
  return value.is_array() ? kTypeArray : kTypeObject;
}

Result<uint8_t> read_types(const SchemaPlace& place) {
  const auto one = [](const SchemaPlace& name) -> Result<uint8_t> {
    if (name.value->is_string()) {
      const auto& text = name.value->get_ref<const std::string&>();
      for (const TypeName& type : kTypeNames)
        if (type.name == text) return type.types;
    }
    return schema_error(
        name, "a type is one of null, boolean, integer, number, string, array and object");
  };
  if (!place.value->is_array()) return one(place);
  if (place.value->empty()) return schema_error(place, "no value has no type: name at least one");
  uint8_t types = 0;
  for (size_t i = 0; i < place.value->size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const uint8_t type, one(place.at(i)));
    types |= type;
  }
  return types;
}

namespace {

// What can be seen of a schema without looking into its properties.
struct Outline {
  uint8_t types = kTypeAny;
  std::optional<std::set<std::string>> constants;                   // its values, spelled
  std::map<std::string, std::set<std::string>> required_constants;  // by property
};

std::string spelled(const SchemaJson& value) {
  // 1.0 and 1 are one value.
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (number == std::floor(number) && std::fabs(number) < 1e15)
      return std::to_string(static_cast<int64_t>(number));
  }
  return value.dump();
}

std::optional<std::set<std::string>> constants_of(const SchemaJson& schema) {
  if (schema.contains("const")) return std::set{spelled(schema.at("const"))};
  if (!schema.contains("enum") || !schema.at("enum").is_array()) return std::nullopt;
  std::set<std::string> values;
  for (const SchemaJson& value : schema.at("enum")) values.insert(spelled(value));
  return values;
}

Result<SchemaPlace> follow_refs(const SchemaJson& document, SchemaPlace place) {
  for (uint32_t hops = 0; hops < grammar_limits::kDepthMax; ++hops) {
    if (!place.value->is_object() || !place.has("$ref")) return place;
    TROUPE_ASSIGN_OR_RETURN(place, resolve_ref(document, place.at("$ref")));
  }
  return schema_error(place, "its references lead from one to the next without end");
}

Result<Outline> outline_of(const SchemaJson& document, const SchemaPlace& member) {
  TROUPE_ASSIGN_OR_RETURN(const SchemaPlace place, follow_refs(document, member));
  Outline outline;
  if (!place.value->is_object()) return outline;
  outline.constants = constants_of(*place.value);
  if (place.has("type")) {
    TROUPE_ASSIGN_OR_RETURN(outline.types, read_types(place.at("type")));
  } else if (outline.constants) {
    outline.types = 0;
    const auto add = [&outline](const SchemaJson& value) { outline.types |= type_of_value(value); };
    if (place.has("const")) {
      add(place.value->at("const"));
    } else {
      for (const SchemaJson& value : place.value->at("enum")) add(value);
    }
  } else if (place.has("properties")) {
    outline.types = kTypeObject;  // schemas are read so, see json_schema.cc
  }
  if (!place.has("required") || !place.has("properties")) return outline;
  const SchemaJson& required = place.value->at("required");
  const SchemaJson& properties = place.value->at("properties");
  if (!required.is_array() || !properties.is_object()) return outline;
  for (const SchemaJson& name : required) {
    if (!name.is_string() || !properties.contains(name.get<std::string>())) continue;
    const SchemaPlace property = place.at("properties").at(name.get<std::string>());
    TROUPE_ASSIGN_OR_RETURN(const SchemaPlace target, follow_refs(document, property));
    if (!target.value->is_object()) continue;
    if (auto constants = constants_of(*target.value))
      outline.required_constants.emplace(name.get<std::string>(), std::move(*constants));
  }
  return outline;
}

bool have_nothing_common(const std::set<std::string>& a, const std::set<std::string>& b) {
  return std::none_of(a.begin(), a.end(),
                      [&b](const std::string& value) { return b.contains(value); });
}

bool are_apart(const Outline& a, const Outline& b) {
  if ((a.types & b.types) == 0) return true;
  if (a.constants && b.constants) return have_nothing_common(*a.constants, *b.constants);
  // Only objects are left over that both could be?
  if ((a.types & b.types) != kTypeObject) return false;
  return std::any_of(a.required_constants.begin(), a.required_constants.end(),
                     [&b](const auto& entry) {
                       const auto other = b.required_constants.find(entry.first);
                       return other != b.required_constants.end() &&
                              have_nothing_common(entry.second, other->second);
                     });
}

}  // namespace

Result<bool> are_disjoint(const SchemaJson& document, const std::vector<SchemaPlace>& members) {
  std::vector<Outline> outlines;
  for (const SchemaPlace& member : members) {
    TROUPE_ASSIGN_OR_RETURN(Outline outline, outline_of(document, member));
    outlines.push_back(std::move(outline));
  }
  for (size_t i = 0; i < outlines.size(); ++i)
    for (size_t k = i + 1; k < outlines.size(); ++k)
      if (!are_apart(outlines[i], outlines[k])) return false;
  return true;
}

}  // namespace troupe
