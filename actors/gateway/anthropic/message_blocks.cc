#include "actors/gateway/anthropic/message_blocks.h"

#include <string>
#include <utility>

#include "actors/gateway/openai/field_reader.h"
#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request_limits.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;
using enum FieldUse;

constexpr KnownField kMessageFields[] = {{"role"}, {"content"}};
constexpr KnownField kTextFields[] = {
    {"type"}, {"text"}, {"cache_control", kTolerated}, {"citations", kTolerated}};
constexpr KnownField kToolUseFields[] = {
    {"type"}, {"id"}, {"name"}, {"input"}, {"cache_control", kTolerated}, {"caller", kTolerated}};
constexpr KnownField kToolResultFields[] = {{"type"},
                                            {"tool_use_id"},
                                            {"content"},
                                            {"is_error", kTolerated},
                                            {"cache_control", kTolerated}};

Status wrong(const FieldReader& fields, const char* name, const std::string& rule) {
  const Json* value = fields.find(name);
  if (value != nullptr) return bad_value(fields.path(name), rule, *value);
  return invalid_argument(fields.path(name) + " is missing; it " + rule, fields.path(name));
}

Result<std::string> required_string(const FieldReader& fields, const char* name) {
  const Json* value = fields.find(name);
  if (value == nullptr || !value->is_string()) return wrong(fields, name, "must be a string");
  return value->get<std::string>();
}

Result<std::string> type_of(const Json& block, const std::string& path) {
  if (!block.is_object()) return bad_value(path, "must be an object", block);
  return required_string(FieldReader(block, path + "."), "type");
}

Status not_here(const Json& block, const std::string& path, const char* what) {
  return {StatusCode::kUnsupported,
          path + ".type must be " + what + "; got " + json_excerpt(block["type"]), path + ".type"};
}

Result<Json> text_part(const Json& block, const std::string& path) {
  TROUPE_RETURN_IF_ERROR(check_known_fields(block, path + ".", kTextFields));
  TROUPE_ASSIGN_OR_RETURN(std::string text,
                          required_string(FieldReader(block, path + "."), "text"));
  return Json{{"type", "text"}, {"text", std::move(text)}};
}

// A string, or blocks of text alone; they keep their places.
Result<Json> text_content(const Json& value, const std::string& path) {
  if (value.is_string()) return value;
  if (!value.is_array() || value.size() > kContentPartsMax) {
    return bad_value(path, "must be a string or an array of text blocks", value);
  }
  if (value.empty()) return Json("");
  Json parts = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    const std::string at = path + "[" + std::to_string(i) + "]";
    TROUPE_ASSIGN_OR_RETURN(const std::string type, type_of(value[i], at));
    if (type != "text") return not_here(value[i], at, "text: this model takes text only");
    TROUPE_ASSIGN_OR_RETURN(Json part, text_part(value[i], at));
    parts.push_back(std::move(part));
  }
  return parts;
}

class Conversation {
 public:
  explicit Conversation(PathRenames& renames) : renames_(renames) {}

  void push(Json message, const std::string& path, const std::string& content_path) {
    const std::string at = "messages[" + std::to_string(messages_.size()) + "]";
    renames_.add(at, path);
    renames_.add(at + ".content", content_path);
    messages_.push_back(std::move(message));
  }

  Status add(const Json& value, const std::string& path) {
    if (!value.is_object()) return bad_value(path, "must be an object", value);
    TROUPE_RETURN_IF_ERROR(check_known_fields(value, path + ".", kMessageFields));
    const FieldReader fields(value, path + ".");
    TROUPE_ASSIGN_OR_RETURN(const std::string role, required_string(fields, "role"));
    if (role != "user" && role != "assistant") {
      return bad_value(fields.path("role"), "must be user or assistant; system is a field", role);
    }
    const Json* content = fields.find("content");
    const std::string at = fields.path("content");
    if (content != nullptr && content->is_string()) {
      push({{"role", role}, {"content", *content}}, path, at);
      return ok_status();
    }
    if (content == nullptr || !content->is_array() || content->empty() ||
        content->size() > kContentPartsMax) {
      return wrong(
          fields, "content",
          "must be a string or an array of 1 to " + std::to_string(kContentPartsMax) + " blocks");
    }
    return role == "user" ? add_user(*content, path, at) : add_assistant(*content, path, at);
  }

  Json take() { return std::move(messages_); }

 private:
  Status add_user(const Json& blocks, const std::string& path, const std::string& at) {
    Json parts = Json::array();
    for (size_t i = 0; i < blocks.size(); ++i) {
      const std::string block_path = at + "[" + std::to_string(i) + "]";
      TROUPE_ASSIGN_OR_RETURN(const std::string type, type_of(blocks[i], block_path));
      if (type == "text") {
        TROUPE_ASSIGN_OR_RETURN(Json part, text_part(blocks[i], block_path));
        parts.push_back(std::move(part));
      } else if (type == "tool_result") {
        if (!parts.empty()) {
          return invalid_argument(block_path +
                                      " is a tool_result behind text; put the results "
                                      "before the text",
                                  block_path);
        }
        TROUPE_RETURN_IF_ERROR(add_tool_result(blocks[i], block_path));
      } else {
        return not_here(blocks[i], block_path, "text or tool_result: this model takes text only");
      }
    }
    if (!parts.empty()) push({{"role", "user"}, {"content", std::move(parts)}}, path, at);
    return ok_status();
  }

  // What the model sees is the content alone: a failed tool says so itself.
  Status add_tool_result(const Json& block, const std::string& path) {
    TROUPE_RETURN_IF_ERROR(check_known_fields(block, path + ".", kToolResultFields));
    const FieldReader fields(block, path + ".");
    TROUPE_ASSIGN_OR_RETURN(std::string id, required_string(fields, "tool_use_id"));
    Json content = "";
    if (const Json* value = fields.find("content"); value != nullptr) {
      TROUPE_ASSIGN_OR_RETURN(content, text_content(*value, fields.path("content")));
    }
    renames_.add("messages[" + std::to_string(messages_.size()) + "].tool_call_id",
                 fields.path("tool_use_id"));
    push({{"role", "tool"}, {"tool_call_id", std::move(id)}, {"content", std::move(content)}}, path,
         fields.path("content"));
    return ok_status();
  }

  Status add_assistant(const Json& blocks, const std::string& path, const std::string& at) {
    Json message = {{"role", "assistant"}, {"content", nullptr}};
    std::string text;
    std::string thinking;
    const std::string chat_path = "messages[" + std::to_string(messages_.size()) + "]";
    for (size_t i = 0; i < blocks.size(); ++i) {
      const std::string block_path = at + "[" + std::to_string(i) + "]";
      const FieldReader block(blocks[i].is_object() ? blocks[i] : kNothing, block_path + ".");
      TROUPE_ASSIGN_OR_RETURN(const std::string type, type_of(blocks[i], block_path));
      if (type == "text") {
        TROUPE_ASSIGN_OR_RETURN(const Json part, text_part(blocks[i], block_path));
        text += part["text"].get_ref<const std::string&>();
      } else if (type == "tool_use") {
        Json& calls = message["tool_calls"];
        const std::string call = chat_path + ".tool_calls[" + std::to_string(calls.size()) + "]";
        renames_.add(call, block_path);
        renames_.add(call + ".function", block_path);
        TROUPE_ASSIGN_OR_RETURN(Json made, to_call(blocks[i], block_path));
        calls.push_back(std::move(made));
      } else if (type == "thinking") {
        TROUPE_ASSIGN_OR_RETURN(const std::string piece, required_string(block, "thinking"));
        thinking += piece;
      } else if (type != "redacted_thinking") {  // that is another server's secret
        return not_here(blocks[i], block_path, "text, tool_use or thinking");
      }
    }
    if (!text.empty() || !message.contains("tool_calls")) message["content"] = std::move(text);
    if (!thinking.empty()) message["reasoning_content"] = std::move(thinking);
    push(std::move(message), path, at);
    return ok_status();
  }

  static Result<Json> to_call(const Json& block, const std::string& path) {
    TROUPE_RETURN_IF_ERROR(check_known_fields(block, path + ".", kToolUseFields));
    const FieldReader fields(block, path + ".");
    TROUPE_ASSIGN_OR_RETURN(std::string id, required_string(fields, "id"));
    TROUPE_ASSIGN_OR_RETURN(std::string name, required_string(fields, "name"));
    const Json* input = fields.find("input");
    if (input == nullptr || !input->is_object()) {
      return wrong(fields, "input", "must be an object");
    }
    return Json{{"id", std::move(id)},
                {"type", "function"},
                {"function", {{"name", std::move(name)}, {"arguments", *input}}}};
  }

  inline static const Json kNothing = Json::object();
  PathRenames& renames_;
  Json messages_ = Json::array();
};

}  // namespace

Result<Json> to_chat_messages(const Json* system, const Json* messages, PathRenames& renames) {
  Conversation conversation(renames);
  if (system != nullptr) {
    TROUPE_ASSIGN_OR_RETURN(Json content, text_content(*system, "system"));
    if (content != "") {
      conversation.push({{"role", "system"}, {"content", std::move(content)}}, "system", "system");
    }
  }
  if (messages == nullptr || !messages->is_array() || messages->empty() ||
      messages->size() > kMessagesMax) {
    const std::string rule =
        "must be an array of 1 to " + std::to_string(kMessagesMax) + " messages";
    if (messages == nullptr) return invalid_argument("messages " + rule, "messages");
    return bad_value("messages", rule, *messages);
  }
  for (size_t i = 0; i < messages->size(); ++i) {
    TROUPE_RETURN_IF_ERROR(conversation.add((*messages)[i], "messages[" + std::to_string(i) + "]"));
  }
  return conversation.take();
}

}  // namespace troupe
