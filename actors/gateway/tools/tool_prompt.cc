#include "actors/gateway/tools/tool_prompt.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"

namespace troupe {

namespace {

using Json = nlohmann::ordered_json;

bool drops_calls_of(const Json& message, const TemplateHabits& habits) {
  return habits.drops_tool_calls && message.contains("tool_calls");
}

bool drops_result(const Json& message, const TemplateHabits& habits) {
  return habits.drops_tool_results && message.at("role") == "tool";
}

bool drops_tools(const Json& tools, const TemplateHabits& habits) {
  return tools.is_array() && habits.drops_tools;
}

// A call as the model would write it, alone.
std::string spelled_call(ToolFormat format, const std::string& name, const std::string& arguments) {
  const std::string call = call_begin(format, name) + arguments + call_end(format);
  return format == ToolFormat::kMistral ? std::string(kMistralOpen) + "[" + call + "]" : call;
}

std::string tools_text(const Json& tools, ToolFormat format) {
  std::string out =
      "# Tools\n\nYou can call functions. These are the functions, each as a JSON "
      "object:\n<tools>\n";
  for (const Json& tool : tools) out += tool.at("function").dump() + "\n";
  out +=
      "</tools>\n\nTo call a function, write its name and its arguments, as a JSON object, in this "
      "form:\n";
  return out + spelled_call(format, "NAME", "{\"ARGUMENT\": \"VALUE\"}");
}

void append_text(Json& content, const std::string& text) {
  if (content.is_array()) {
    content.push_back({{"type", "text"}, {"text", text}});
    return;
  }
  std::string joined = content.is_string() ? content.get<std::string>() : std::string();
  if (!joined.empty()) joined += "\n\n";
  content = joined + text;
}

void put_calls(Json& message, ToolFormat format) {
  std::string text;
  for (const Json& call : message.at("tool_calls")) {
    const Json& function = call.at("function");
    const Json& arguments = function.at("arguments");
    std::string json = arguments.is_string() ? arguments.get<std::string>() : arguments.dump();
    if (json.empty()) json = "{}";
    text += (text.empty() ? "" : "\n") +
            spelled_call(format, function.at("name").get<std::string>(), json);
  }
  message.erase("tool_calls");
  append_text(message["content"], text);
}

void put_result(Json& message) {
  const Json& result = message.at("content");
  std::string text;
  if (result.is_string()) text = result.get<std::string>();
  if (result.is_array()) {
    for (const Json& part : result) {
      text += (text.empty() ? "" : "\n") + part.at("text").get<std::string>();
    }
  }
  message["role"] = "user";
  message["content"] = "<tool_response>\n" + text + "\n</tool_response>";
  message.erase("tool_call_id");
  message.erase("name");
}

}  // namespace

bool needs_tools_in_words(const Json& messages, const Json& tools, const TemplateHabits& habits) {
  return drops_tools(tools, habits) ||
         std::any_of(messages.begin(), messages.end(), [&](const Json& message) {
           return drops_calls_of(message, habits) || drops_result(message, habits);
         });
}

Json put_tools_in_words(Json messages, const Json& tools, ToolFormat format,
                        const TemplateHabits& habits) {
  TROUPE_ASSERT(format != ToolFormat::kNone && messages.is_array() && !messages.empty());
  for (Json& message : messages) {
    if (drops_calls_of(message, habits)) put_calls(message, format);
    if (drops_result(message, habits)) put_result(message);
  }
  if (!drops_tools(tools, habits)) return messages;
  const Json& role = messages.front().at("role");
  const bool has_system = role == "system" || role == "developer";
  if (!has_system && !habits.drops_system) {
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", ""}});
  }
  append_text(messages.front()["content"], tools_text(tools, format));
  return messages;
}

}  // namespace troupe
