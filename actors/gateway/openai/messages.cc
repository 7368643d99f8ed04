#include "actors/gateway/openai/messages.h"

#include <array>
#include <string>
#include <utility>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request_limits.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

// The tolerated ones are what the API itself returned one turn before.
constexpr KnownField kMessageFields[] = {
    {"role"},
    {"content"},
    {"name"},
    {"tool_calls"},
    {"tool_call_id"},
    {"refusal", FieldUse::kTolerated},
    {"parsed", FieldUse::kTolerated},  // what clients make of an answer and send along
    {"annotations", FieldUse::kTolerated},
    {"reasoning"},
    {"reasoning_content"},
    {"audio", FieldUse::kUnsupported},
    {"function_call", FieldUse::kUnsupported},
};
constexpr std::string_view kRoleRule = "must be one of system, developer, user, assistant, tool";

Result<std::string> parse_role(const FieldReader& message) {
  const Json* value = message.find("role");
  if (value == nullptr) {
    return invalid_argument(message.path("role") + " is missing; it " + std::string(kRoleRule),
                            message.path("role"));
  }
  if (!value->is_string()) return bad_value(message.path("role"), kRoleRule, *value);
  const auto& role = value->get_ref<const std::string&>();
  for (const char* known : {"system", "developer", "user", "assistant", "tool"}) {
    if (role == known) return role;
  }
  return bad_value(message.path("role"), kRoleRule, *value);
}

Result<Json> parse_parts(const Json& parts, const std::string& path) {
  if (parts.empty() || parts.size() > kContentPartsMax) {
    return invalid_argument(path + " must have 1 to " + std::to_string(kContentPartsMax) +
                                " parts; got " + std::to_string(parts.size()),
                            path);
  }
  Json out = Json::array();
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    if (!parts[i].is_object()) {
      return bad_value(at, "must be an object such as {\"type\":\"text\",\"text\":\"...\"}",
                       parts[i]);
    }
    const FieldReader part(parts[i], at + ".");
    const Json* type = part.find("type");
    if (type == nullptr || !type->is_string()) {
      return invalid_argument(part.path("type") + " must be the string \"text\"",
                              part.path("type"));
    }
    if (*type != "text") {
      return Status(StatusCode::kUnsupported,
                    part.path("type") +
                        " must be \"text\", the only kind of content that this "
                        "model takes; got " +
                        json_excerpt(*type),
                    part.path("type"));
    }
    const Json* value = part.find("text");
    if (value == nullptr || !value->is_string()) {
      return invalid_argument(part.path("text") + " must be a string", part.path("text"));
    }
    out.push_back({{"type", "text"}, {"text", *value}});
  }
  return out;
}

Result<Json> parse_function(const FieldReader& call) {
  const std::string path = call.path("function");
  const Json* value = call.find("function");
  if (value == nullptr || !value->is_object()) {
    return invalid_argument(path + " must be an object with name and arguments", path);
  }
  const FieldReader function(*value, path + ".");
  const Json* name = function.find("name");
  if (name == nullptr || !name->is_string() || name->get_ref<const std::string&>().empty()) {
    return invalid_argument(function.path("name") + " must be a non-empty string",
                            function.path("name"));
  }
  Json out = {{"name", *name}, {"arguments", Json::object()}};
  const Json* arguments = function.find("arguments");
  if (arguments == nullptr) return out;
  if (!arguments->is_string() && !arguments->is_object()) {
    return bad_value(function.path("arguments"), "must be a string or an object", *arguments);
  }
  out["arguments"] = *arguments;
  return out;
}

Result<Json> parse_tool_calls(const Json& calls, const std::string& path) {
  if (!calls.is_array() || calls.size() > kToolCallsMax) {
    return bad_value(
        path, "must be an array of at most " + std::to_string(kToolCallsMax) + " calls", calls);
  }
  Json out = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    if (!calls[i].is_object()) return bad_value(at, "must be an object", calls[i]);
    const FieldReader call(calls[i], at + ".");
    std::string id;
    std::string type = "function";
    TROUPE_RETURN_IF_ERROR(call.read("id", id));
    TROUPE_RETURN_IF_ERROR(call.read("type", type));
    if (type != "function") {
      return bad_value(call.path("type"), "must be \"function\"", *call.find("type"));
    }
    TROUPE_ASSIGN_OR_RETURN(Json function, parse_function(call));
    out.push_back({{"id", id}, {"type", type}, {"function", std::move(function)}});
  }
  return out;
}

// Fills content and tool_calls, which depend on each other.
Status parse_substance(const FieldReader& message, const std::string& role, Json& out) {
  const Json* calls = message.find("tool_calls");
  Json tool_calls = Json::array();
  if (calls != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(tool_calls, parse_tool_calls(*calls, message.path("tool_calls")));
    if (!tool_calls.empty() && role != "assistant") {
      return invalid_argument(
          message.path("tool_calls") + " is only for assistant messages; this one is of " + role,
          message.path("tool_calls"));
    }
  }
  const std::string path = message.path("content");
  const Json* content = message.find("content");
  out["content"] = nullptr;
  if (content == nullptr) {
    if (tool_calls.empty() && !out.contains("reasoning_content")) {
      return invalid_argument(path +
                                  " must be a string or an array of parts; it is missing or "
                                  "null, which only assistant messages with tool_calls may have",
                              path);
    }
  } else if (content->is_string()) {
    out["content"] = *content;
  } else if (content->is_array()) {
    TROUPE_ASSIGN_OR_RETURN(out["content"], parse_parts(*content, path));
  } else {
    return bad_value(path, "must be a string or an array of parts", *content);
  }
  if (!tool_calls.empty()) out["tool_calls"] = std::move(tool_calls);
  return ok_status();
}

// Of the two names that clients use, the older one wins. Only the assistant reasons.
Status parse_reasoning(const FieldReader& message, const std::string& role, Json& out) {
  for (const char* field : {"reasoning_content", "reasoning"}) {
    std::string text;
    TROUPE_RETURN_IF_ERROR(message.read(field, text));
    if (text.empty() || out.contains("reasoning_content")) continue;
    if (role != "assistant") {
      return invalid_argument(
          message.path(field) + " is only for assistant messages; this one is of " + role,
          message.path(field));
    }
    out["reasoning_content"] = std::move(text);
  }
  return ok_status();
}

Result<Json> parse_message(const Json& value, const std::string& path) {
  if (!value.is_object()) {
    return bad_value(path, "must be an object with role and content", value);
  }
  TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kMessageFields));
  const FieldReader message(value, path + ".");
  TROUPE_ASSIGN_OR_RETURN(const std::string role, parse_role(message));
  Json out = {{"role", role}};
  TROUPE_RETURN_IF_ERROR(parse_reasoning(message, role, out));
  TROUPE_RETURN_IF_ERROR(parse_substance(message, role, out));
  for (const char* field : {"name", "tool_call_id"}) {
    if (!message.has(field)) continue;
    std::string text;
    TROUPE_RETURN_IF_ERROR(message.read(field, text));
    out[field] = std::move(text);
  }
  if (role == "tool" && !out.contains("tool_call_id")) {
    return invalid_argument(
        message.path("tool_call_id") + " is missing; a tool message says which call it answers",
        message.path("tool_call_id"));
  }
  return out;
}

}  // namespace

Result<Json> parse_messages(const Json* value) {
  const std::string path = "messages";
  if (value == nullptr) {
    return invalid_argument("messages is missing; send an array of at least one message", path);
  }
  if (!value->is_array() || value->empty()) {
    return bad_value(path, "must be an array of at least one message", *value);
  }
  if (value->size() > kMessagesMax) {
    return invalid_argument("messages must have at most " + std::to_string(kMessagesMax) +
                                " messages; got " + std::to_string(value->size()),
                            path);
  }
  Json out = Json::array();
  for (size_t i = 0; i < value->size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Json message,
                            parse_message((*value)[i], "messages[" + std::to_string(i) + "]"));
    out.push_back(std::move(message));
  }
  return out;
}

}  // namespace troupe
