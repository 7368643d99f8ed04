#include "actors/gateway/responses/input_items.h"

#include <string_view>
#include <utility>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request_limits.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kMessageFields[] = {{"type"},
                                         {"role"},
                                         {"content"},
                                         {"id", kTolerated},
                                         {"status", kTolerated},
                                         {"phase", kTolerated}};
constexpr KnownField kCallFields[] = {{"type"},
                                      {"call_id"},
                                      {"name"},
                                      {"arguments"},
                                      {"id", kTolerated},
                                      {"status", kTolerated},
                                      {"async", kUnsupported},
                                      {"namespace", kUnsupported}};
constexpr KnownField kOutputFields[] = {
    {"type"}, {"call_id"}, {"output"}, {"id", kTolerated}, {"status", kTolerated}};
constexpr KnownField kReasoningFields[] = {{"type"},
                                           {"content"},
                                           {"id", kTolerated},
                                           {"status", kTolerated},
                                           {"summary", kTolerated},
                                           {"encrypted_content", kTolerated}};
constexpr KnownField kPartFields[] = {{"type"},
                                      {"text"},
                                      {"refusal"},
                                      {"annotations", kTolerated},
                                      {"logprobs", kTolerated},
                                      {"image_url", kTolerated},
                                      {"file_id", kTolerated},
                                      {"file_url", kTolerated},
                                      {"file_data", kTolerated},
                                      {"filename", kTolerated},
                                      {"input_audio", kTolerated},
                                      {"detail", kTolerated}};

Status missing(const FieldReader& item, const char* name, const std::string& rule) {
  const Json* value = item.find(name);
  if (value != nullptr) return bad_value(item.path(name), rule, *value);
  return invalid_argument(item.path(name) + " is missing; it " + rule, item.path(name));
}

Result<std::string> required_string(const FieldReader& item, const char* name) {
  const Json* value = item.find(name);
  if (value == nullptr || !value->is_string()) return missing(item, name, "must be a string");
  return value->get<std::string>();
}

Result<Json> to_part(const Json& value, const std::string& path) {
  if (!value.is_object()) return bad_value(path, "must be an object", value);
  TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kPartFields));
  const FieldReader part(value, path + ".");
  TROUPE_ASSIGN_OR_RETURN(const std::string type, required_string(part, "type"));
  if (type != "input_text" && type != "output_text" && type != "text" && type != "refusal") {
    return Status(StatusCode::kUnsupported,
                  part.path("type") +
                      " must be \"input_text\" or \"output_text\": this model takes text only; "
                      "got " +
                      json_excerpt(value["type"]),
                  part.path("type"));
  }
  TROUPE_ASSIGN_OR_RETURN(std::string text,
                          required_string(part, type == "refusal" ? "refusal" : "text"));
  return Json{{"type", "text"}, {"text", std::move(text)}};
}

// Parts keep their places, so that an error of the chat names the right one.
Result<Json> to_content(const Json& value, const std::string& path) {
  if (value.is_string()) return value;
  if (!value.is_array() || value.size() > kContentPartsMax) {
    return bad_value(
        path,
        "must be a string or an array of at most " + std::to_string(kContentPartsMax) + " parts",
        value);
  }
  Json parts = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(Json part, to_part(value[i], path + "[" + std::to_string(i) + "]"));
    parts.push_back(std::move(part));
  }
  return parts;
}

class InputReader {
 public:
  InputReader(Json& messages, PathRenames& renames) : messages_(messages), renames_(renames) {}

  Status read(const Json& value, const std::string& path) {
    if (!value.is_object()) return bad_value(path, "must be an object", value);
    const FieldReader item(value, path + ".");
    std::string type = "message";
    TROUPE_RETURN_IF_ERROR(item.read("type", type));
    if (type == "message") return read_message(value, item, path);
    if (type == "function_call") return read_call(value, item, path);
    if (type == "function_call_output") return read_output(value, item, path);
    if (type == "reasoning") return read_reasoning(value, item, path);
    return {StatusCode::kUnsupported,
            item.path("type") +
                " must be message, function_call, function_call_output or reasoning; got " +
                json_excerpt(*item.find("type")),
            item.path("type")};
  }

 private:
  void push(Json message, const std::string& path) {
    renames_.add("messages[" + std::to_string(messages_.size()) + "]", path);
    std::string reasoning = std::exchange(reasoning_, {});
    if (message["role"] == "assistant" && !reasoning.empty()) {
      message["reasoning_content"] = std::move(reasoning);
    }
    messages_.push_back(std::move(message));
  }

  Status read_message(const Json& value, const FieldReader& item, const std::string& path) {
    TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kMessageFields));
    TROUPE_ASSIGN_OR_RETURN(std::string role, required_string(item, "role"));
    const Json* content = item.find("content");
    if (content == nullptr) {
      return missing(item, "content", "must be a string or an array of parts");
    }
    if (role == "tool") {
      return bad_value(item.path("role"),
                       "must be system, developer, user or assistant; what a tool said is a "
                       "function_call_output",
                       value["role"]);
    }
    TROUPE_ASSIGN_OR_RETURN(Json parts, to_content(*content, item.path("content")));
    open_turn_ = role == "assistant";
    push({{"role", std::move(role)}, {"content", std::move(parts)}}, path);
    return ok_status();
  }

  Status read_call(const Json& value, const FieldReader& item, const std::string& path) {
    TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kCallFields));
    TROUPE_ASSIGN_OR_RETURN(std::string id, required_string(item, "call_id"));
    TROUPE_ASSIGN_OR_RETURN(std::string name, required_string(item, "name"));
    TROUPE_ASSIGN_OR_RETURN(std::string arguments, required_string(item, "arguments"));
    if (!std::exchange(open_turn_, true)) push({{"role", "assistant"}, {"content", nullptr}}, path);
    Json& calls = messages_.back()["tool_calls"];
    const std::string at = "messages[" + std::to_string(messages_.size() - 1) + "].tool_calls[" +
                           std::to_string(calls.size()) + "]";
    renames_.add(at, path);
    renames_.add(at + ".id", path + ".call_id");
    renames_.add(at + ".function", path);
    calls.push_back(
        {{"id", std::move(id)},
         {"type", "function"},
         {"function", {{"name", std::move(name)}, {"arguments", std::move(arguments)}}}});
    return ok_status();
  }

  Status read_output(const Json& value, const FieldReader& item, const std::string& path) {
    TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kOutputFields));
    TROUPE_ASSIGN_OR_RETURN(std::string id, required_string(item, "call_id"));
    const Json* output = item.find("output");
    if (output == nullptr) return missing(item, "output", "must be a string or an array of parts");
    TROUPE_ASSIGN_OR_RETURN(Json content, to_content(*output, item.path("output")));
    open_turn_ = false;
    const std::string at = "messages[" + std::to_string(messages_.size()) + "]";
    renames_.add(at + ".content", path + ".output");
    renames_.add(at + ".tool_call_id", path + ".call_id");
    push({{"role", "tool"}, {"tool_call_id", std::move(id)}, {"content", std::move(content)}},
         path);
    return ok_status();
  }

  // Only its text is of use: encrypted reasoning is another server's.
  Status read_reasoning(const Json& value, const FieldReader& item, const std::string& path) {
    TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kReasoningFields));
    open_turn_ = false;
    const Json* content = item.find("content");
    if (content == nullptr) return ok_status();
    if (!content->is_array()) {
      return bad_value(item.path("content"), "must be an array of parts", *content);
    }
    for (size_t i = 0; i < content->size(); ++i) {
      const std::string at = item.path("content") + "[" + std::to_string(i) + "]";
      if (!(*content)[i].is_object()) return bad_value(at, "must be an object", (*content)[i]);
      TROUPE_ASSIGN_OR_RETURN(const std::string text,
                              required_string(FieldReader((*content)[i], at + "."), "text"));
      reasoning_ += text;
    }
    return ok_status();
  }

  Json& messages_;
  PathRenames& renames_;
  std::string reasoning_;   // of the assistant's message that is to come
  bool open_turn_ = false;  // the last message is the assistant's, and calls belong to it
};

}  // namespace

Status append_input(const Json& input, Json& messages, PathRenames& renames) {
  if (input.is_string()) {
    const std::string at = "messages[" + std::to_string(messages.size()) + "]";
    renames.add(at, "input");
    renames.add(at + ".content", "input");
    messages.push_back({{"role", "user"}, {"content", input}});
    return ok_status();
  }
  if (!input.is_array() || input.empty() || input.size() > kMessagesMax) {
    return bad_value(
        "input", "must be a string or an array of 1 to " + std::to_string(kMessagesMax) + " items",
        input);
  }
  InputReader reader(messages, renames);
  for (size_t i = 0; i < input.size(); ++i) {
    TROUPE_RETURN_IF_ERROR(reader.read(input[i], "input[" + std::to_string(i) + "]"));
  }
  return ok_status();
}

Json listed_input(const Json& input, const std::string& id_tail) {
  Json items = input;
  if (input.is_string()) {
    Json part = {{"type", "input_text"}, {"text", input}};
    items = Json::array();
    items.push_back(
        {{"type", "message"}, {"role", "user"}, {"content", Json::array({std::move(part)})}});
  }
  for (size_t i = 0; i < items.size(); ++i) {
    Json& item = items[i];
    if (!item.contains("type") || !item["type"].is_string()) item["type"] = "message";
    if (item.contains("id") && item["id"].is_string()) continue;
    const std::string type = item["type"];
    const char* kind = type == "message" ? "msg_" : type == "reasoning" ? "rs_" : "fc_";
    item["id"] = kind + id_tail + "_in" + std::to_string(i);
    if (!item.contains("status")) item["status"] = "completed";
  }
  return items;
}

}  // namespace troupe
