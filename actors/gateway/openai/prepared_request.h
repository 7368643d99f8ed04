#pragma once
// A checked request body together with its prompts as tokens: ready to be generated.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/gateway/openai/model_catalogue.h"
#include "actors/gateway/openai/request.h"
#include "base/ids.h"
#include "troupe/status.h"

namespace troupe {

struct PreparedPrompt {
  std::vector<TokenId> tokens;  // never empty; fits the context together with max_tokens
  std::string echo_text;        // what `echo` shows: the client's text, or that of its tokens
  AnswerFormat format;          // of a chat: how to read the answer
  PromptEnd end = PromptEnd::kBeforeAnswer;
  uint32_t max_tokens = 0;  // 0 only where the request said so
};

struct PreparedRequest {
  const CataloguedModel* model = nullptr;  // never null once prepared; outlives the request
  GenerationBody body;
  std::vector<PreparedPrompt> prompts;  // one for a chat
};

// Tokenises and applies the context limit. Without a max_tokens, a chat gets the rest of the
// context and a completion kCompletionTokensDefault or the rest, if that is less; a max_tokens that
// does not fit is refused, never silently cut. kContextLength names the numbers.
[[nodiscard]] Result<PreparedRequest> prepare_request(GenerationBody body,
                                                      const CataloguedModel& model,
                                                      int64_t unix_seconds);

}  // namespace troupe
