#pragma once
// What a request has cost so far, over all its prompts and choices.

#include <cstdint>
#include <optional>

namespace troupe {

struct UsageTotals {
  uint64_t prompt_tokens = 0;      // each prompt once, whatever n
  uint64_t completion_tokens = 0;  // of all choices
  // Of completion_tokens; nothing where the model does not reason.
  std::optional<uint64_t> reasoning_tokens;
  // Found in the prefix cache, of all prompts; unknown while a worker has not reported it.
  std::optional<uint64_t> cached_tokens;
};

}  // namespace troupe
