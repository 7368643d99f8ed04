#pragma once
// The bodies and events of the generating endpoints, as text. Written by hand rather than through a
// JSON library: an event is made for each token of each stream.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "actors/gateway/openai/request.h"
#include "actors/gateway/openai/usage_totals.h"
#include "actors/gateway/tools/answer_parts.h"

namespace troupe {

// One choice as it stands in an event or in the whole answer.
struct CallView {
  std::string_view id, name, arguments;
};

struct ChoiceView {
  uint32_t index = 0;
  std::string_view text;
  std::string_view logprobs;       // an object as text; empty: null
  std::string_view finish_reason;  // empty: null
  // Only of a whole answer to a chat.
  std::string_view reasoning;  // empty: left out
  std::span<const CallView> calls;
};

// Holds what is the same in all events of one response.
class ResponseFormat final {
 public:
  ResponseFormat(Api api, std::string_view id, int64_t created_unix_s, std::string_view model);

  // Payloads of server-sent events. `usage`: the text of the usage field's value ("null", or what
  // usage() returns), or empty to leave the field out.
  // The first event of a chat's choice, with the role and no text.
  [[nodiscard]] std::string role_event(uint32_t index, std::string_view usage) const;
  [[nodiscard]] std::string text_event(const ChoiceView& choice, std::string_view usage) const;
  // An event of a chat with one part of the answer, whatever it is but a finished call.
  [[nodiscard]] std::string part_event(uint32_t index, const AnswerPart& part,
                                       std::string_view logprobs, std::string_view usage) const;
  // The last event of a choice: its finish reason and nothing else.
  [[nodiscard]] std::string finish_event(uint32_t index, std::string_view finish_reason,
                                         std::string_view usage) const;
  // The last event of a response: no choice, only the usage.
  [[nodiscard]] std::string usage_event(std::string_view usage) const;

  // The answer that is not streamed: `choices` are the results of choice(), joined by commas.
  [[nodiscard]] std::string body(std::string_view choices, std::string_view usage) const;
  [[nodiscard]] std::string choice(const ChoiceView& choice) const;

  // {"prompt_tokens":...,"completion_tokens":...,"total_tokens":...,"prompt_tokens_details":...}
  [[nodiscard]] static std::string usage(const UsageTotals& totals);

 private:
  [[nodiscard]] std::string event(std::string_view choice, std::string_view usage) const;

  Api api_;
  std::string event_head_;  // up to and including "choices":[
  std::string body_head_;
};

}  // namespace troupe
