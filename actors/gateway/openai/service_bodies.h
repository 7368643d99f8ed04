#pragma once
// The answers of the endpoints that generate nothing.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/prompt_encoder.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/openai/served_model.h"
#include "troupe/status.h"

namespace troupe {

// One model object, and the list of the one there is.
[[nodiscard]] std::string format_model(const ServedModel& model);
[[nodiscard]] std::string format_model_list(const ServedModel& model);

// {"count","max_model_len","tokens","token_strs"}; the tokens are those that a generating request
// with the same prompt or messages would have.
[[nodiscard]] Result<std::string> answer_tokenize(std::string_view body, const ServedModel& model,
                                                  const PromptEncoder& encoder,
                                                  int64_t unix_seconds);
// {"prompt"}: the text of the tokens, special ones spelled; U+FFFD for what is no UTF-8.
[[nodiscard]] Result<std::string> answer_detokenize(std::string_view body,
                                                    const ServedModel& model);

[[nodiscard]] RequestRules rules_of(const ServedModel& model);

}  // namespace troupe
