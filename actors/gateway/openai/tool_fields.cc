#include "actors/gateway/openai/tool_fields.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/tools/limits.h"
#include "actors/gateway/tools/tool_grammar.h"
#include "engine/grammar/check_grammar.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kToolFields[] = {{"type"}, {"function"}};
constexpr KnownField kFunctionFields[] = {{"name"}, {"description"}, {"parameters"}, {"strict"}};
constexpr KnownField kChoiceFields[] = {{"type"}, {"function"}};
constexpr KnownField kChosenFields[] = {{"name"}};
constexpr std::string_view kChoiceRule =
    "must be \"none\", \"auto\", \"required\" or {\"type\":\"function\",\"function\":{\"name\":"
    "\"...\"}}";

bool is_tool_name(std::string_view name) {
  return !name.empty() && name.size() <= kToolNameBytesMax &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-';
         });
}

// Of a tool or of a choice: what is no function is another kind of tool, of OpenAI's own servers.
Status check_type(const FieldReader& object) {
  const std::string path = object.path("type");
  const Json* type = object.find("type");
  if (type == nullptr) {
    return invalid_argument(path + " is missing; it must be \"function\"", path);
  }
  if (!type->is_string()) return bad_value(path, "must be \"function\"", *type);
  if (*type == "function") return ok_status();
  return Status(StatusCode::kUnsupported,
                path + " must be \"function\", the only kind that this server has; got " +
                    json_excerpt(*type),
                path);
}

Result<const Json*> find_object(const FieldReader& object, const char* name) {
  const Json* value = object.find(name);
  const std::string path = object.path(name);
  if (value == nullptr) return invalid_argument(path + " is missing; send an object", path);
  if (!value->is_object()) return bad_value(path, "must be an object", *value);
  return value;
}

Result<Tool> parse_tool(const Json& value, const std::string& path) {
  if (!value.is_object()) {
    return bad_value(path, "must be an object with type and function", value);
  }
  const FieldReader tool(value, path + ".");
  TROUPE_RETURN_IF_ERROR(check_type(tool));
  TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kToolFields));
  TROUPE_ASSIGN_OR_RETURN(const Json* object, find_object(tool, "function"));
  const std::string prefix = tool.path("function") + ".";
  TROUPE_RETURN_IF_ERROR(check_known_fields(*object, prefix, kFunctionFields));
  return parse_function_tool(FieldReader(*object, prefix), "parameters");
}

Status parse_choice(const Json& value, ToolRequest& out) {
  if (value.is_string()) {
    if (value == "none") {
      out.choice = ToolChoice::kNone;
    } else if (value == "auto") {
      out.choice = ToolChoice::kAuto;
    } else if (value == "required") {
      out.choice = ToolChoice::kRequired;
    } else {
      return bad_value("tool_choice", kChoiceRule, value);
    }
    return ok_status();
  }
  if (!value.is_object()) return bad_value("tool_choice", kChoiceRule, value);
  const FieldReader choice(value, "tool_choice.");
  TROUPE_RETURN_IF_ERROR(check_type(choice));
  TROUPE_RETURN_IF_ERROR(check_known_fields(value, "tool_choice.", kChoiceFields));
  TROUPE_ASSIGN_OR_RETURN(const Json* object, find_object(choice, "function"));
  TROUPE_RETURN_IF_ERROR(check_known_fields(*object, "tool_choice.function.", kChosenFields));
  out.choice = ToolChoice::kNamed;
  const FieldReader function(*object, "tool_choice.function.");
  return function.read("name", out.name);
}

}  // namespace

Result<Tool> parse_function_tool(const FieldReader& function, const char* schema_field) {
  Tool out;
  out.path = function.path(schema_field);
  const Json* name = function.find("name");
  const std::string name_path = function.path("name");
  const std::string rule =
      "must be 1 to " + std::to_string(kToolNameBytesMax) + " of A-Z, a-z, 0-9, _ and -";
  if (name == nullptr) return invalid_argument(name_path + " is missing; it " + rule, name_path);
  if (!name->is_string() || !is_tool_name(name->get_ref<const std::string&>())) {
    return bad_value(name_path, rule, *name);
  }
  out.name = name->get<std::string>();
  TROUPE_RETURN_IF_ERROR(function.read("description", out.description));
  TROUPE_RETURN_IF_ERROR(function.read("strict", out.strict));
  if (const Json* schema = function.find(schema_field); schema != nullptr) {
    if (!schema->is_object()) return bad_value(out.path, "must be a JSON Schema object", *schema);
    const auto type = schema->find("type");
    if (type != schema->end() && *type != "object") {
      return bad_value(out.path + ".type", "must be \"object\"", *type);
    }
    out.parameters = *schema;
    if (type == schema->end() && !schema->contains("$ref")) out.parameters["type"] = "object";
  }
  if (out.parameters.empty()) {
    out.parameters = {{"type", "object"}, {"properties", Json::object()}};
  }
  return out;
}

Status check_tool_list(const std::vector<Tool>& tools, const std::string& path) {
  if (tools.size() > kToolsMax) {
    return invalid_argument(path + " must have at most " + std::to_string(kToolsMax) +
                                " tools; got " + std::to_string(tools.size()),
                            path);
  }
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < tools.size(); ++i) {
    if (names.insert(tools[i].name).second) continue;
    const std::string at = path + "[" + std::to_string(i) + "]";
    return invalid_argument(
        at + " has the name \"" + tools[i].name + "\" of another tool; names must differ", at);
  }
  return ok_status();
}

Status check_tool_choice(const ToolRequest& request, const std::string& path) {
  if (request.choice == ToolChoice::kNone) return ok_status();
  if (request.tools.empty()) {
    return invalid_argument(path + " needs tools; remove it, or send \"none\"", path);
  }
  if (request.choice != ToolChoice::kNamed) return ok_status();
  const bool offered = std::any_of(request.tools.begin(), request.tools.end(),
                                   [&](const Tool& tool) { return tool.name == request.name; });
  if (offered) return ok_status();
  return bad_value(path, "must name one of the tools", Json(request.name));
}

Result<ToolRequest> parse_tools(const FieldReader& fields) {
  ToolRequest out;
  if (const Json* tools = fields.find("tools"); tools != nullptr) {
    const std::string path = fields.path("tools");
    if (!tools->is_array()) return bad_value(path, "must be an array", *tools);
    // Counted before they are read.
    if (tools->size() > kToolsMax) {
      TROUPE_RETURN_IF_ERROR(check_tool_list(std::vector<Tool>(tools->size()), path));
    }
    for (size_t i = 0; i < tools->size(); ++i) {
      TROUPE_ASSIGN_OR_RETURN(Tool tool,
                              parse_tool((*tools)[i], path + "[" + std::to_string(i) + "]"));
      out.tools.push_back(std::move(tool));
    }
    TROUPE_RETURN_IF_ERROR(check_tool_list(out.tools, path));
  }
  out.choice = out.tools.empty() ? ToolChoice::kNone : ToolChoice::kAuto;
  if (const Json* choice = fields.find("tool_choice"); choice != nullptr) {
    TROUPE_RETURN_IF_ERROR(parse_choice(*choice, out));
  }
  TROUPE_RETURN_IF_ERROR(check_tool_choice(
      out, out.choice == ToolChoice::kNamed && !out.tools.empty() ? "tool_choice.function.name"
                                                                  : "tool_choice"));
  TROUPE_RETURN_IF_ERROR(fields.read("parallel_tool_calls", out.parallel));
  return out;
}

Json tools_for_template(const ToolRequest& request) {
  if (!request.on()) return nullptr;
  Json out = Json::array();
  for (const Tool& tool : request.tools) {
    Json function = {{"name", tool.name}};
    if (!tool.description.empty()) function["description"] = tool.description;
    function["parameters"] = tool.parameters;
    out.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return out;
}

Status check_tool_schemas(const ToolRequest& request) {
  for (const Tool& tool : request.tools) {
    if (!holds_to_schema(request, tool)) continue;
    const Status status = check_grammar({GrammarKind::kJsonSchema, tool.parameters.dump()});
    if (status.ok()) continue;
    const std::string param = status.param().empty() ? tool.path : tool.path + "." + status.param();
    return Status(status.code(), tool.path + " cannot be enforced: " + status.message(), param);
  }
  return ok_status();
}

}  // namespace troupe
