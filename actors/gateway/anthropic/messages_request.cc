#include "actors/gateway/anthropic/messages_request.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "actors/gateway/anthropic/message_blocks.h"
#include "actors/gateway/openai/common_fields.h"
#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/request_limits.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kFields[] = {
    {"model", kUsed, "a name that `GET /v1/models` lists"},
    {"messages", kUsed,
     "of `user` and `assistant`: a string, or blocks `text`, `tool_use`, "
     "`tool_result`, `thinking`; an assistant's last message is continued"},
    {"system", kUsed, "a string or `text` blocks"},
    {"max_tokens", kUsed, "required, at least 1"},
    {"stop_sequences", kUsed, "at most 4 strings"},
    {"stream", kUsed, "Anthropic's events"},
    {"temperature", kUsed, "0 to 2 (Anthropic's ends at 1)"},
    {"top_k", kUsed, "as in a chat"},
    {"top_p", kUsed, "above 0 to 1"},
    {"tools", kUsed, "with `input_schema`; tools that Anthropic's servers run are refused"},
    {"tool_choice", kUsed, "`auto`, `any`, `tool`, `none`; `disable_parallel_tool_use`"},
    {"thinking", kUsed,
     "`disabled` only; a thinking model's thoughts come as `thinking` blocks "
     "all the same"},
    {"output_config", kUsed,
     "`format` of type `json_schema`; `effort` as a chat's `reasoning_effort`"},
    {"cache_salt", kUsed, "ours; shares cached prefixes only within one salt"},
    {"metadata", kTolerated, "`user_id`"},
    {"user_profile_id", kTolerated, ""},
    {"workspace_id", kTolerated, ""},
    {"service_tier", kTolerated, ""},
    {"cache_control", kTolerated, "prefixes are cached by themselves"},
    {"container", kUnsupported, ""},
    {"diagnostics", kUnsupported, ""},
    {"context_management", kUnsupported, ""},
    {"inference_geo", kUnsupported, ""},
    {"mcp_servers", kUnsupported, ""},
    {"output_format", kUnsupported, "send `output_config.format`"},
    {"speed", kUnsupported, ""},
};

// Fields that a chat has under the same name, with the same meaning.
constexpr const char* kShared[] = {"model", "stream", "temperature",
                                   "top_k", "top_p",  "cache_salt"};

Status unsupported(const Json& value, const std::string& path, const char* rule) {
  return {StatusCode::kUnsupported, path + " " + rule + "; got " + json_excerpt(value), path};
}

Status check_thinking(const FieldReader& fields) {
  const Json* value = fields.find("thinking");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) return bad_value("thinking", "must be an object", *value);
  const FieldReader thinking(*value, "thinking.");
  const Json* type = thinking.find("type");
  if (type != nullptr && *type == "disabled") return ok_status();
  return unsupported(type == nullptr ? *value : *type, "thinking.type",
                     "must be \"disabled\": this server cannot hold a budget of thoughts");
}

Status add_output_config(const FieldReader& fields, Json& chat, PathRenames& renames) {
  const Json* value = fields.find("output_config");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) return bad_value("output_config", "must be an object", *value);
  constexpr KnownField kConfigFields[] = {{"format"}, {"effort"}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "output_config.", kConfigFields));
  const FieldReader config(*value, "output_config.");
  renames.add("reasoning_effort", "output_config.effort");
  if (const Json* effort = config.find("effort")) chat["reasoning_effort"] = *effort;
  const Json* format = config.find("format");
  if (format == nullptr) return ok_status();
  if (!format->is_object() || !format->contains("schema") || (*format)["type"] != "json_schema") {
    return bad_value("output_config.format", "must have type \"json_schema\" and a schema",
                     *format);
  }
  renames.add("response_format", "output_config.format");
  renames.add("response_format.json_schema", "output_config.format");
  chat["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "output"}, {"schema", (*format)["schema"]}, {"strict", true}}}};
  return ok_status();
}

constexpr KnownField kToolFields[] = {{"name"},
                                      {"description"},
                                      {"input_schema"},
                                      {"type"},
                                      {"strict"},
                                      {"cache_control", kTolerated},
                                      {"eager_input_streaming", kTolerated},
                                      {"input_examples", kUnsupported},
                                      {"allowed_callers", kUnsupported},
                                      {"defer_loading", kUnsupported}};

Result<Json> to_tool(const Json& tool, const std::string& path) {
  if (!tool.is_object()) return bad_value(path, "must be an object", tool);
  const FieldReader fields(tool, path + ".");
  const Json* type = fields.find("type");
  if (type != nullptr && *type != "custom") {
    return unsupported(*type, path + ".type",
                       "must be \"custom\": this server runs no tools of its own");
  }
  TROUPE_RETURN_IF_ERROR(check_known_fields(tool, path + ".", kToolFields));
  Json function = Json::object();
  for (const char* name : {"name", "description", "strict"}) {
    if (const Json* value = fields.find(name)) function[name] = *value;
  }
  const Json* schema = fields.find("input_schema");
  if (schema == nullptr) {
    return invalid_argument(path + ".input_schema is missing; it must be a JSON Schema",
                            path + ".input_schema");
  }
  function["parameters"] = *schema;
  return Json{{"type", "function"}, {"function", std::move(function)}};
}

Status add_tools(const FieldReader& fields, Json& chat, PathRenames& renames) {
  const Json* tools = fields.find("tools");
  if (tools == nullptr) return ok_status();
  if (!tools->is_array()) return bad_value("tools", "must be an array", *tools);
  Json out = Json::array();
  for (size_t i = 0; i < tools->size(); ++i) {
    const std::string path = "tools[" + std::to_string(i) + "]";
    TROUPE_ASSIGN_OR_RETURN(Json tool, to_tool((*tools)[i], path));
    renames.add(path + ".function", path);
    renames.add(path + ".function.parameters", path + ".input_schema");
    out.push_back(std::move(tool));
  }
  chat["tools"] = std::move(out);
  return ok_status();
}

Status add_tool_choice(const FieldReader& fields, Json& chat, PathRenames& renames) {
  const Json* value = fields.find("tool_choice");
  if (value == nullptr) return ok_status();
  if (!value->is_object()) return bad_value("tool_choice", "must be an object", *value);
  constexpr KnownField kChoiceFields[] = {{"type"}, {"name"}, {"disable_parallel_tool_use"}};
  TROUPE_RETURN_IF_ERROR(check_known_fields(*value, "tool_choice.", kChoiceFields));
  const FieldReader choice(*value, "tool_choice.");
  bool alone = false;
  TROUPE_RETURN_IF_ERROR(choice.read("disable_parallel_tool_use", alone));
  if (alone) chat["parallel_tool_calls"] = false;
  renames.add("parallel_tool_calls", "tool_choice.disable_parallel_tool_use");
  renames.add("tool_choice.function", "tool_choice");
  std::string type;
  std::string name;
  TROUPE_RETURN_IF_ERROR(choice.read("type", type));
  TROUPE_RETURN_IF_ERROR(choice.read("name", name));
  if (type == "tool") {
    if (name.empty()) {
      return invalid_argument("tool_choice.name is missing; it says which tool is to be called",
                              "tool_choice.name");
    }
    chat["tool_choice"] = {{"type", "function"}, {"function", {{"name", std::move(name)}}}};
  } else if (type == "auto" || type == "none") {
    chat["tool_choice"] = type;
  } else if (type == "any") {
    chat["tool_choice"] = "required";
  } else {
    return bad_value("tool_choice", "must have one of the types auto, any, tool, none", *value);
  }
  return ok_status();
}

// A count has no answer that would have to fit, but what is sent along must make sense.
enum class MaxTokens { kRequired, kUnused };

Status add_max_tokens(const FieldReader& fields, MaxTokens rule, Json& chat) {
  if (rule == MaxTokens::kUnused) {
    std::optional<int64_t> unused;
    return fields.read("max_tokens", 1, INT32_MAX, unused);
  }
  const Json* value = fields.find("max_tokens");
  if (value == nullptr) {
    return invalid_argument("max_tokens is missing; send how many tokens the answer may have",
                            "max_tokens");
  }
  chat["max_tokens"] = *value;
  return ok_status();
}

Result<MessagesRequest> parse(std::string_view body, std::span<const RequestRules> models,
                              MaxTokens max_tokens) {
  TROUPE_ASSIGN_OR_RETURN(const Json object, parse_object(body));
  TROUPE_RETURN_IF_ERROR(check_known_fields(object, "", kFields));
  const FieldReader fields(object, "");
  MessagesRequest out;
  Json chat = Json::object();
  for (const char* name : kShared) {
    if (const Json* value = fields.find(name)) chat[name] = *value;
  }
  TROUPE_RETURN_IF_ERROR(add_max_tokens(fields, max_tokens, chat));
  out.renames.add("stop", "stop_sequences");
  if (const Json* value = fields.find("stop_sequences"); value != nullptr) {
    if (!value->is_array()) return bad_value("stop_sequences", "must be an array", *value);
    chat["stop"] = *value;
  }
  TROUPE_RETURN_IF_ERROR(check_thinking(fields));
  TROUPE_RETURN_IF_ERROR(add_output_config(fields, chat, out.renames));
  TROUPE_RETURN_IF_ERROR(add_tools(fields, chat, out.renames));
  TROUPE_RETURN_IF_ERROR(add_tool_choice(fields, chat, out.renames));
  TROUPE_ASSIGN_OR_RETURN(chat["messages"], to_chat_messages(fields.find("system"),
                                                             fields.find("messages"), out.renames));
  if (chat["messages"].back()["role"] == "assistant") {
    out.renames.add("continue_final_message", "messages");
    chat["continue_final_message"] = true;
    chat["add_generation_prompt"] = false;
  }
  Result<GenerationBody> checked = check_chat(chat, models);
  if (!checked.ok()) return out.renames.apply(checked.status());
  out.body = std::move(checked).value();
  return out;
}

}  // namespace

std::span<const KnownField> messages_fields() {
  return kFields;
}

Result<MessagesRequest> parse_messages_body(std::string_view body,
                                            std::span<const RequestRules> models) {
  return parse(body, models, MaxTokens::kRequired);
}

Result<MessagesRequest> parse_count_body(std::string_view body,
                                         std::span<const RequestRules> models) {
  return parse(body, models, MaxTokens::kUnused);
}

}  // namespace troupe
