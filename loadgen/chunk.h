#pragma once
// One event of a streamed completion or chat.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe::loadgen {

struct Usage {
  uint32_t prompt_tokens = 0, completion_tokens = 0;
  bool operator==(const Usage&) const = default;
};

struct Chunk {
  bool is_done = false;      // "[DONE]": the stream's last event
  bool has_choices = false;  // at least one: what time to first token and ITL are measured by
  bool is_finished = false;  // a finish_reason
  std::string text;          // of the first choice: content or text, reasoning included
  std::optional<Usage> usage;
  std::optional<std::string> error;  // the server's own words in place of a chunk
};

// kDataLoss: no JSON object, or its fields have other types than the API says.
[[nodiscard]] Result<Chunk> parse_chunk(std::string_view data);

// The message of an error answer: `error.message`, `message` or `detail` of a JSON body, else its
// beginning.
[[nodiscard]] std::string error_message_of(std::string_view body);

}  // namespace troupe::loadgen
