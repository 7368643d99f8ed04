#pragma once
// What a response consists of: its output items as JSON text, and as a message of the conversation.

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {

enum class OutputKind { kMessage, kReasoning, kCall };

// One output item while it grows.
struct OutputItem {
  OutputKind kind = OutputKind::kMessage;
  std::string id;
  std::string text;      // of a message or of reasoning; a call's arguments
  std::string name;      // of a call
  std::string call_id;   // of a call
  std::string logprobs;  // of a message: the elements of an array
};

// `status` is in_progress, completed or incomplete. While it is in progress the text is left out,
// as events send it piece by piece.
[[nodiscard]] std::string format_item(const OutputItem& item, std::string_view status);
// {"type":"output_text",...} or {"type":"reasoning_text",...}; not for calls.
[[nodiscard]] std::string format_part(const OutputItem& item, std::string_view text,
                                      std::string_view logprobs);
// The assistant's message that a later request is to see.
[[nodiscard]] nlohmann::ordered_json to_chat_message(const std::vector<OutputItem>& items);

}  // namespace troupe
