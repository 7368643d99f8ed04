#include "actors/gateway/openai/conversation.h"

#include <array>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/request_limits.h"
#include "actors/gateway/text/escape.h"
#include "engine/chat_template/value_json.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDeveloper = "developer";
constexpr const char* kSystem = "system";

// The names under which templates look for an assistant's reasoning.
constexpr std::array<const char*, 3> kReasoningFields = {"reasoning_content", "reasoning",
                                                         "thinking"};

std::string message_path(size_t index, const char* field) {
  return "messages[" + std::to_string(index) + "]." + field;
}

Status dropped(const std::string& what, const std::string& advice, const std::string& path) {
  return {StatusCode::kUnsupported, "the model's chat template drops " + what + "; " + advice,
          path};
}

const TemplateHabits::Content& rule_of(const std::string& role, const TemplateHabits& habits) {
  if (role == kSystem || role == kDeveloper) return habits.system;
  if (role == "assistant") return habits.assistant;
  if (role == "tool") return habits.tool;
  return habits.user;
}

std::string joined_text(const Json& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += '\n';
    text += parts[i].at("text").get_ref<const std::string&>();
  }
  return text;
}

TemplateValue text_part(const std::string& text) {
  return TemplateValue::list({TemplateValue::dict(
      {{"type", TemplateValue::data("text")}, {"text", TemplateValue::data(text)}})});
}

Result<TemplateValue> content_value(const Json& content, const TemplateHabits::Content& rule,
                                    const TemplateHabits& habits) {
  if (content.is_null()) {
    return habits.wants_content_none ? TemplateValue::none() : TemplateValue::data("");
  }
  if (content.is_array()) {
    if (rule.takes_parts) return template_value_from_json(content);
    return TemplateValue::data(joined_text(content));
  }
  const auto& text = content.get_ref<const std::string&>();
  return rule.takes_text ? TemplateValue::data(text) : text_part(text);
}

// Text that is no JSON object stays as it is: a model may have written it.
Json arguments_value(const Json& arguments, const TemplateHabits& habits) {
  if (habits.wants_arguments_as_text) {
    return arguments.is_string() ? arguments : Json(arguments.dump());
  }
  if (!arguments.is_string()) return arguments;
  if (arguments.get_ref<const std::string&>().empty()) return Json::object();
  Result<Json> parsed = parse_json(arguments.get_ref<const std::string&>());
  return parsed.ok() && parsed->is_object() ? std::move(parsed).value() : arguments;
}

Result<TemplateValue> calls_value(const Json& calls, const TemplateHabits& habits) {
  Json out = Json::array();
  for (const Json& call : calls) {
    Json copy = call;
    copy["function"]["arguments"] = arguments_value(call.at("function").at("arguments"), habits);
    out.push_back(std::move(copy));
  }
  return template_value_from_json(out);
}

// Which function each call of the messages so far asked for.
using CalledNames = std::unordered_map<std::string, std::string>;

void note_calls(const Json& message, CalledNames& names) {
  if (!message.contains("tool_calls")) return;
  for (const Json& call : message["tool_calls"]) {
    names[call.at("id").get<std::string>()] = call.at("function").at("name").get<std::string>();
  }
}

std::optional<std::string> name_of(const Json& message, const CalledNames& names) {
  if (message.contains("name")) return message["name"].get<std::string>();
  // OpenAI's API gives the call's id alone; some templates print the function.
  if (message.at("role") != "tool") return std::nullopt;
  const auto found = names.find(message.at("tool_call_id").get<std::string>());
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

Status check_expressible(const Json& messages, const Json& tools, const Json& template_kwargs,
                         const TemplateTraits& traits, const TemplateHabits& habits) {
  if (tools.is_array() && habits.drops_tools) {
    return dropped("tools: this model cannot be told of them",
                   "remove them, or let the server say them in words (--tool-call-format)",
                   "tools");
  }
  if (template_kwargs.is_object()) {
    for (const auto& [name, value] : template_kwargs.items()) {
      if (traits.reads_variable(name)) continue;
      const std::string path = "chat_template_kwargs." + printable_excerpt(name, kExcerptBytesMax);
      return Status(StatusCode::kUnsupported,
                    path + " is not a variable of the model's chat template; remove it", path);
    }
  }
  for (size_t i = 0; i < messages.size(); ++i) {
    const Json& message = messages[i];
    const Json& role = message.at("role");
    const bool is_system = role == kSystem || role == kDeveloper;
    if (is_system && (i == 0 ? habits.drops_system : habits.drops_later_system)) {
      return dropped(i == 0 ? "system messages" : "system messages that are not the first",
                     "put the text into a user message", message_path(i, "role"));
    }
    if (message.contains("tool_calls") && habits.drops_tool_calls) {
      return dropped("tool calls", "remove them, or write them into the content",
                     message_path(i, "tool_calls"));
    }
    if (role == "tool" && habits.drops_tool_results) {
      return dropped("tool results", "write them into a user message", message_path(i, "role"));
    }
  }
  return ok_status();
}

Result<std::vector<ChatMessage>> to_conversation(const Json& messages, const TemplateTraits& traits,
                                                 const TemplateHabits& habits) {
  std::vector<ChatMessage> out;
  out.reserve(messages.size());
  CalledNames names;
  for (const Json& message : messages) {
    ChatMessage one;
    one.role = message.at("role").get<std::string>();
    TROUPE_ASSIGN_OR_RETURN(
        one.content, content_value(message.at("content"), rule_of(one.role, habits), habits));
    if (one.role == kDeveloper && !traits.names(kDeveloper)) one.role = kSystem;
    one.name = name_of(message, names);
    if (message.contains("tool_call_id")) {
      one.tool_call_id = message["tool_call_id"].get<std::string>();
    }
    if (message.contains("tool_calls")) {
      note_calls(message, names);
      TROUPE_ASSIGN_OR_RETURN(one.tool_calls, calls_value(message["tool_calls"], habits));
    }
    if (message.contains("reasoning_content")) {
      const auto& reasoning = message["reasoning_content"].get_ref<const std::string&>();
      for (const char* field : kReasoningFields) {
        if (!traits.reads_field(field)) continue;
        one.extra.emplace_back(field, TemplateValue::data(reasoning));
      }
    }
    out.push_back(std::move(one));
  }
  return out;
}

size_t content_bytes(const Json& messages) {
  size_t bytes = 0;
  for (const Json& message : messages) {
    const Json& content = message.at("content");
    if (content.is_string()) bytes += content.get_ref<const std::string&>().size();
    if (!content.is_array()) continue;
    for (const Json& part : content) bytes += part.at("text").get_ref<const std::string&>().size();
  }
  return bytes;
}

}  // namespace troupe
