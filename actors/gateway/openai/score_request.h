#pragma once
// POST /v1/score: what was asked for, checked.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request.h"

namespace troupe {

class CataloguedModel;

// The log-probability of each continuation after one prompt.
struct ScoreBody {
  size_t model = 0;  // index in the rules that the body was checked against
  RawPrompt prompt;
  std::vector<RawPrompt> continuations;  // at least one
  std::string cache_salt;
};

// Errors as those of parse_chat_body().
[[nodiscard]] Result<ScoreBody> parse_score_body(std::string_view body,
                                                 std::span<const RequestRules> models);
[[nodiscard]] std::span<const KnownField> score_fields();

// Tokens of the prompt and of each continuation. They are tokenised apart, so that the prompt is
// the same for all; only the prompt gets the model's begin token. None is empty, and the prompt
// fits the context together with each.
struct ScoreTokens {
  std::vector<TokenId> prompt;
  std::vector<std::vector<TokenId>> continuations;
};
[[nodiscard]] Result<ScoreTokens> encode_score(const ScoreBody& body, const CataloguedModel& model);

}  // namespace troupe
