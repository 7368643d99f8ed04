#include "actors/gateway/responses/output_items.h"

#include <utility>

#include "actors/gateway/text/escape.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

void append_member(std::string& out, const char* name, std::string_view text) {
  out += ",\"";
  out += name;
  out += "\":";
  append_json_string(out, text);
}

}  // namespace

std::string format_part(const OutputItem& item, std::string_view text, std::string_view logprobs) {
  const bool is_message = item.kind == OutputKind::kMessage;
  std::string out = is_message ? R"({"type":"output_text")" : R"({"type":"reasoning_text")";
  append_member(out, "text", text);
  if (is_message) {
    out += ",\"annotations\":[],\"logprobs\":[";
    out += logprobs;
    out += ']';
  }
  return out + '}';
}

std::string format_item(const OutputItem& item, std::string_view status) {
  const bool is_open = status == "in_progress";
  std::string out = "{\"id\":";
  append_json_string(out, item.id);
  append_member(out, "status", status);
  if (item.kind == OutputKind::kCall) {
    append_member(out, "type", "function_call");
    append_member(out, "call_id", item.call_id);
    append_member(out, "name", item.name);
    append_member(out, "arguments", is_open ? "" : item.text);
    return out + '}';
  }
  const std::string content =
      is_open ? "[]" : "[" + format_part(item, item.text, item.logprobs) + "]";
  if (item.kind == OutputKind::kReasoning) {
    append_member(out, "type", "reasoning");
    return out + ",\"summary\":[],\"content\":" + content + '}';
  }
  append_member(out, "type", "message");
  return out + ",\"role\":\"assistant\",\"content\":" + content + '}';
}

Json to_chat_message(const std::vector<OutputItem>& items) {
  std::string text, reasoning;
  Json calls = Json::array();
  for (const OutputItem& item : items) {
    if (item.kind == OutputKind::kMessage) text += item.text;
    if (item.kind == OutputKind::kReasoning) reasoning += item.text;
    if (item.kind != OutputKind::kCall) continue;
    calls.push_back({{"id", item.call_id},
                     {"type", "function"},
                     {"function", {{"name", item.name}, {"arguments", item.text}}}});
  }
  Json message = {{"role", "assistant"}, {"content", std::move(text)}};
  if (!reasoning.empty()) message["reasoning_content"] = std::move(reasoning);
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace troupe
