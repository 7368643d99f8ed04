#pragma once
// What is asked.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/trace/request_trace.h"
#include "loadgen/words.h"
#include "troupe/status.h"

namespace troupe::loadgen {

struct Message {
  std::string role, content;
  bool operator==(const Message&) const = default;
};

struct Turn {
  Message message;                   // added to what has been said
  uint32_t output_tokens = 1;        // of the answer at most, or exactly where the end is ignored
  uint32_t prompt_tokens_aimed = 0;  // of the message; 0: it was not made to a length
};

// Asked one turn after the other, each with all messages and answers before it.
struct Conversation {
  std::vector<Message> opening;
  std::vector<Turn> turns;  // at least one
};

// A pure function of the index (and of its own seed), so that the order of asking changes nothing.
class PromptSource {
 public:
  virtual ~PromptSource() = default;
  [[nodiscard]] virtual Conversation make(uint64_t index) const = 0;
  // Conversations that are no repetition; 0: without end.
  [[nodiscard]] virtual uint64_t size() const = 0;
};

struct RandomPromptOptions {
  LengthRange prompt_tokens{128, 128};  // of each turn's message, without the shared prefix
  LengthRange output_tokens{128, 128};
  uint32_t prefix_tokens = 0;  // before the first message, shared by a group; 0: none
  uint32_t prefix_groups = 1;  // conversations belong to these in turn
  uint32_t turns = 1;
  uint64_t seed = 0;
};
// `words` are one token each, also after a blank.
[[nodiscard]] std::unique_ptr<PromptSource> random_prompts(const RandomPromptOptions& options,
                                                           std::vector<std::string> words);

// As long as the requests of a trace; where it names the content of blocks, equal names give equal
// text. `trace` must outlive the result.
[[nodiscard]] std::unique_ptr<PromptSource> trace_prompts(const Trace& trace, uint64_t seed,
                                                          std::vector<std::string> words);

// Conversations as they are, over and over; not empty.
[[nodiscard]] std::unique_ptr<PromptSource> given_prompts(std::vector<Conversation> conversations);

struct PromptFileOptions {
  LengthRange output_tokens{128, 128};  // where the file gives none
  bool keep_output_tokens = true;       // take the file's lengths where it has them
  uint32_t turns = 1;                   // at most, of recorded conversations
  uint64_t seed = 0;
};
// Reads JSON lines (`prompt` or `messages`, and `output_tokens` or `max_tokens`), or one JSON array
// of recorded conversations (`conversations` of `from` and `value`). kInvalidArgument names the
// line or element, the rule and the fix.
[[nodiscard]] Result<std::vector<Conversation>> read_prompts(std::istream& in,
                                                             const std::string& name,
                                                             const PromptFileOptions& options);

}  // namespace troupe::loadgen
