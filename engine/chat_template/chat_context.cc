#include "engine/chat_template/chat_context.h"

namespace troupe {
namespace {

using Entries = std::vector<std::pair<std::string, TemplateValue>>;

// Clients send an empty list for "none"; templates that ask "is defined" must not see it.
bool is_absent(const TemplateValue& list) {
  return !list.truthy();
}

TemplateValue message_value(const ChatMessage& message) {
  Entries entries;
  entries.emplace_back("role", TemplateValue::data(message.role));
  const bool has_content = !message.content.is(TemplateValue::Kind::kUndefined);
  entries.emplace_back("content", has_content ? message.content : TemplateValue::data(""));
  if (message.name) entries.emplace_back("name", TemplateValue::data(*message.name));
  if (message.tool_call_id) {
    entries.emplace_back("tool_call_id", TemplateValue::data(*message.tool_call_id));
  }
  if (!is_absent(message.tool_calls)) entries.emplace_back("tool_calls", message.tool_calls);
  for (const auto& field : message.extra) entries.push_back(field);
  return TemplateValue::dict(std::move(entries));
}

}  // namespace

TemplateValue make_chat_context(const std::vector<ChatMessage>& messages,
                                const ChatContextOptions& options) {
  TemplateValue::List list;
  list.reserve(messages.size());
  for (const ChatMessage& message : messages) list.push_back(message_value(message));

  Entries entries;
  entries.emplace_back("messages", TemplateValue::list(std::move(list)));
  entries.emplace_back("add_generation_prompt",
                       TemplateValue::boolean(options.add_generation_prompt));
  if (options.bos_token) {
    entries.emplace_back("bos_token", TemplateValue::markup(*options.bos_token));
  }
  if (options.eos_token) {
    entries.emplace_back("eos_token", TemplateValue::markup(*options.eos_token));
  }
  entries.emplace_back("tools", is_absent(options.tools) ? TemplateValue::none() : options.tools);
  entries.emplace_back("documents", TemplateValue::none());
  for (const auto& extra : options.extra) entries.push_back(extra);
  return TemplateValue::dict(std::move(entries));
}

}  // namespace troupe
