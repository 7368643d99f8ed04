#include "actors/gateway/openai/structured_fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "actors/gateway/openai/known_fields.h"
#include "engine/grammar/check_grammar.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr size_t kNameBytesMax = 64;

// One demand and where it stands in the body.
struct Demand {
  GrammarSpec spec;
  std::string path;
};

Result<Demand> text_demand(GrammarKind kind, const Json& value, std::string path) {
  if (!value.is_string()) return bad_value(path, "must be a string", value);
  return Demand{{kind, value.get<std::string>()}, std::move(path)};
}

// A schema or a structural tag: JSON as it is, or as a string that holds JSON.
Result<Demand> json_demand(GrammarKind kind, const Json& value, std::string path) {
  if (value.is_string()) return Demand{{kind, value.get<std::string>()}, std::move(path)};
  const bool fits = value.is_object() || (value.is_boolean() && kind == GrammarKind::kJsonSchema);
  if (!fits) return bad_value(path, "must be an object, or a string that holds one", value);
  return Demand{{kind, value.dump()}, std::move(path)};
}

Result<Demand> choice_demand(const Json& value, std::string path) {
  if (!value.is_array()) return bad_value(path, "must be an array of strings", value);
  return Demand{{GrammarKind::kChoice, value.dump()}, std::move(path)};
}

Result<Demand> schema_format(const Json& format) {
  constexpr KnownField kFields[] = {{"name"}, {"description"}, {"schema"}, {"strict"}};
  const std::string path = "response_format.json_schema";
  if (!format.contains("json_schema") || !format.at("json_schema").is_object())
    return invalid_argument(path + " must be an object with a name and a schema", path);
  const Json& wrapper = format.at("json_schema");
  TROUPE_RETURN_IF_ERROR(check_known_fields(wrapper, path + ".", kFields));
  const FieldReader fields(wrapper, path + ".");
  std::string name;
  TROUPE_RETURN_IF_ERROR(fields.read("name", name));
  const bool is_name = !name.empty() && name.size() <= kNameBytesMax &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                         return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                                (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
                       });
  if (!is_name) {
    return invalid_argument(path + ".name must have 1 to " + std::to_string(kNameBytesMax) +
                                " letters, digits, '_' and '-'",
                            path + ".name");
  }
  std::string description;
  TROUPE_RETURN_IF_ERROR(fields.read("description", description));
  // The answer is held to the schema either way.
  bool strict = false;
  TROUPE_RETURN_IF_ERROR(fields.read("strict", strict));
  const Json* schema = fields.find("schema");
  if (schema == nullptr || !schema->is_object())
    return invalid_argument(path + ".schema must be an object", path + ".schema");
  return Demand{{GrammarKind::kJsonSchema, schema->dump()}, path + ".schema"};
}

// Nothing for the type `text`.
Result<std::optional<Demand>> format_demand(const Json& format) {
  const std::string path = "response_format";
  if (!format.is_object() || !format.contains("type") || !format.at("type").is_string())
    return bad_value(path, "must be an object with a string type", format);
  constexpr KnownField kPlain[] = {{"type"}};
  constexpr KnownField kSchema[] = {{"type"}, {"json_schema"}};
  const std::string type = format.at("type").get<std::string>();
  if (type == "text" || type == "json_object") {
    TROUPE_RETURN_IF_ERROR(check_known_fields(format, path + ".", kPlain));
    if (type == "text") return std::optional<Demand>();
    return std::optional(Demand{{GrammarKind::kJsonObject, ""}, path});
  }
  if (type == "json_schema") {
    TROUPE_RETURN_IF_ERROR(check_known_fields(format, path + ".", kSchema));
    TROUPE_ASSIGN_OR_RETURN(Demand demand, schema_format(format));
    return std::optional(std::move(demand));
  }
  if (type == "structural_tag")
    return std::optional(Demand{{GrammarKind::kStructuralTag, format.dump()}, path});
  return bad_value(path + ".type", "must be text, json_object, json_schema or structural_tag",
                   format.at("type"));
}

// vLLM's names, of both generations. The path is the field's own.
Result<std::optional<Demand>> named_demand(const FieldReader& fields, const char* name) {
  const Json* value = fields.find(name);
  if (value == nullptr) return std::optional<Demand>();
  std::string kind(name);
  if (kind.starts_with("guided_")) kind = kind.substr(7);
  const std::string path = fields.path(name);
  const auto demanded = [&]() -> Result<Demand> {
    if (kind == "json") return json_demand(GrammarKind::kJsonSchema, *value, path);
    if (kind == "structural_tag") return json_demand(GrammarKind::kStructuralTag, *value, path);
    if (kind == "regex") return text_demand(GrammarKind::kRegex, *value, path);
    if (kind == "grammar") return text_demand(GrammarKind::kEbnf, *value, path);
    if (kind == "choice") return choice_demand(*value, path);
    if (!value->is_boolean()) return bad_value(path, "must be true or false", *value);
    return Demand{{GrammarKind::kJsonObject, ""}, path};
  };
  if (kind == "json_object" && value->is_boolean() && !value->get<bool>())
    return std::optional<Demand>();
  TROUPE_ASSIGN_OR_RETURN(Demand demand, demanded());
  return std::optional(std::move(demand));
}

Status add(Result<std::optional<Demand>> found, std::optional<Demand>& out) {
  TROUPE_ASSIGN_OR_RETURN(std::optional<Demand> demand, std::move(found));
  if (!demand) return ok_status();
  if (out) {
    return invalid_argument(out->path + " and " + demand->path +
                                " both say what the answer looks like; send one of them",
                            demand->path);
  }
  out = std::move(demand);
  return ok_status();
}

Status add_structured_outputs(const FieldReader& fields, std::optional<Demand>& out) {
  const Json* value = fields.find("structured_outputs");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) return bad_value("structured_outputs", "must be an object", *value);
  constexpr KnownField kFields[] = {{"json"},
                                    {"regex"},
                                    {"choice"},
                                    {"grammar"},
                                    {"json_object"},
                                    {"structural_tag"},
                                    {"disable_fallback", kTolerated},
                                    {"disable_any_whitespace", kUnsupported},
                                    {"disable_additional_properties", kUnsupported},
                                    {"whitespace_pattern", kUnsupported}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "structured_outputs.", kFields));
  const FieldReader inner(*value, "structured_outputs.");
  for (const char* name : {"json", "regex", "choice", "grammar", "json_object", "structural_tag"})
    TROUPE_RETURN_IF_ERROR(add(named_demand(inner, name), out));
  if (out) return ok_status();
  return invalid_argument(
      "structured_outputs must hold json, regex, choice, grammar, json_object "
      "or structural_tag",
      "structured_outputs");
}

}  // namespace

Status parse_structured_fields(const FieldReader& fields, GrammarSpec& out) {
  std::optional<Demand> demand;
  if (const Json* format = fields.find("response_format"); format != nullptr)
    TROUPE_RETURN_IF_ERROR(add(format_demand(*format), demand));
  std::optional<Demand> structured;
  TROUPE_RETURN_IF_ERROR(add_structured_outputs(fields, structured));
  if (structured) TROUPE_RETURN_IF_ERROR(add(std::move(structured), demand));
  for (const char* name : {"guided_json", "guided_regex", "guided_choice", "guided_grammar"})
    TROUPE_RETURN_IF_ERROR(add(named_demand(fields, name), demand));
  if (!demand) return ok_status();
  const Status checked = check_grammar(demand->spec);
  if (!checked.ok()) {
    const bool is_index = checked.param().starts_with('[');
    const std::string inner = checked.param().empty() || is_index ? "" : ".";
    return {checked.code(), demand->path + ": " + checked.message(),
            demand->path + inner + checked.param()};
  }
  out = std::move(demand->spec);
  return ok_status();
}

}  // namespace troupe
