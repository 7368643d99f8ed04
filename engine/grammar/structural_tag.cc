#include "engine/grammar/structural_tag.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/grammar/code_points.h"
#include "engine/grammar/ebnf.h"
#include "engine/grammar/json_depth.h"
#include "engine/grammar/json_schema.h"
#include "engine/grammar/limits.h"
#include "engine/grammar/regex.h"
#include "engine/grammar/rules.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 15> kFormats = {
    "const_string", "any_text",       "sequence",
    "or",           "optional",       "plus",
    "star",         "repeat",         "tag",
    "token",        "triggered_tags", "tags_with_separator",
    "any_tokens",   "exclude_token",  "token_triggered_tags"};

Status wrong(const std::string& path, const std::string& what, const std::string& param = {}) {
  return invalid_argument("the structural tag at $." + path + ": " + what,
                          param.empty() ? path : path + "." + param);
}

// What an inner demand becomes, with its errors placed.
Result<Json> as_grammar(Result<Rules> rules, const std::string& path) {
  Status status = rules.status();
  if (rules.ok()) status = rules->check();
  if (!status.ok()) return wrong(path, status.message(), status.param());
  TROUPE_ASSIGN_OR_RETURN(std::string text, rules->write());
  return Json{{"type", "grammar"}, {"grammar", std::move(text)}};
}

Result<Rules> rules_of_regex(std::string_view pattern) {
  TROUPE_ASSIGN_OR_RETURN(Expr root, parse_regex(pattern, RegexUse::kText));
  Rules rules;
  rules.set_root(std::move(root));
  return rules;
}

Result<Json> lower_demand(const Json& format, const std::string& type, const std::string& path) {
  const auto has_string = [&format](const char* key) {
    return format.contains(key) && format.at(key).is_string();
  };
  if (type == "json_schema") {
    if (!format.contains("json_schema")) return wrong(path, "json_schema is missing");
    if (format.contains("style") && format.at("style") != "json")
      return wrong(path, "only the style json is supported", "style");
    return as_grammar(rules_of_json_schema(format.at("json_schema").dump()), path + ".json_schema");
  }
  if (type == "regex") {
    if (!has_string("pattern")) return wrong(path, "pattern is missing");
    return as_grammar(rules_of_regex(format.at("pattern").get_ref<const std::string&>()),
                      path + ".pattern");
  }
  if (!has_string("grammar")) return wrong(path, "grammar is missing");
  if (format.contains("syntax") && format.at("syntax") != "ebnf")
    return wrong(path, "only the syntax ebnf is supported", "syntax");
  return as_grammar(parse_ebnf(format.at("grammar").get_ref<const std::string&>()),
                    path + ".grammar");
}

// Formats stand in `content`, `elements`, `tags` and the like, so every member is looked at.
Status lower(Json& value, const std::string& path, uint32_t depth) {
  if (depth > grammar_limits::kDepthMax)
    return wrong(path, "it is nested too deep; at most " +
                           std::to_string(grammar_limits::kDepthMax) + " levels are possible");
  if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i)
      TROUPE_RETURN_IF_ERROR(lower(value[i], path + "[" + std::to_string(i) + "]", depth + 1));
    return ok_status();
  }
  if (!value.is_object()) return ok_status();
  if (value.contains("type")) {
    if (!value.at("type").is_string()) return wrong(path, "type must be a string", "type");
    const std::string type = value.at("type").get<std::string>();
    if (type == "json_schema" || type == "regex" || type == "grammar") {
      TROUPE_ASSIGN_OR_RETURN(value, lower_demand(value, type, path));
      return ok_status();
    }
    if (std::find(kFormats.begin(), kFormats.end(), type) == kFormats.end())
      return wrong(path, "the format '" + utf8_prefix(type, kQuotedBytesMax) + "' is not supported",
                   "type");
  }
  for (const auto& [key, member] : value.items())
    TROUPE_RETURN_IF_ERROR(
        lower(member, path + "." + utf8_prefix(key, kQuotedBytesMax), depth + 1));
  return ok_status();
}

// {"structures": [{begin, schema, end}], "triggers": […]} in today's form.
Result<Json> modern(const Json& tag) {
  const Json& structures = tag.at("structures");
  if (!structures.is_array() || !tag.contains("triggers"))
    return invalid_argument("the structural tag needs 'structures' and 'triggers', two arrays",
                            "structures");
  Json tags = Json::array();
  for (size_t i = 0; i < structures.size(); ++i) {
    const Json& one = structures[i];
    const bool is_complete = one.is_object() && one.contains("begin") && one.contains("end");
    if (!is_complete)
      return wrong("structures[" + std::to_string(i) + "]", "begin and end are needed");
    const Json schema = one.contains("schema") ? one.at("schema") : Json::object();
    tags.push_back({{"type", "tag"},
                    {"begin", one.at("begin")},
                    {"content", {{"type", "json_schema"}, {"json_schema", schema}}},
                    {"end", one.at("end")}});
  }
  return Json{{"type", "triggered_tags"}, {"triggers", tag.at("triggers")}, {"tags", tags}};
}

}  // namespace

Result<std::string> lower_structural_tag(std::string_view text) {
  TROUPE_ASSIGN_OR_RETURN(Json tag, parse_bounded_json(text, "the structural tag"));
  if (!tag.is_object()) return invalid_argument("the structural tag is not a JSON object");
  Json format;
  if (tag.contains("format")) {
    format = tag.at("format");
  } else if (tag.contains("structures")) {
    TROUPE_ASSIGN_OR_RETURN(format, modern(tag));
  } else {
    return invalid_argument("the structural tag has no 'format'", "format");
  }
  if (!format.is_object() || !format.contains("type"))
    return invalid_argument("the structural tag's format must be an object with a type", "format");
  TROUPE_RETURN_IF_ERROR(lower(format, "format", 0));
  std::string out = Json{{"type", "structural_tag"}, {"format", std::move(format)}}.dump();
  if (out.size() > grammar_limits::kRulesBytesMax) {
    return invalid_argument("written out, the structural tag takes more than " +
                            std::to_string(grammar_limits::kRulesBytesMax) +
                            " bytes: ask for less at once");
  }
  return out;
}

}  // namespace troupe
