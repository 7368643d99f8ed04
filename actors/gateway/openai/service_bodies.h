#pragma once
// The answers of the endpoints that generate nothing.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/health_source.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "actors/gateway/openai/served_model.h"
#include "troupe/status.h"

namespace troupe {

// One model object, and the list of those that can be served now, one for each name.
[[nodiscard]] std::string format_model(const ServedModel& model);
[[nodiscard]] std::string format_model_list(const ModelCatalogue& models,
                                            const HealthSource& health);

// The tokens that a generating request with the same prompt or messages would have.
[[nodiscard]] Result<std::vector<TokenId>> tokenize(const TokenizeBody& request,
                                                    const CataloguedModel& model,
                                                    int64_t unix_seconds);
// The text of the tokens, special ones spelled; U+FFFD for what is no UTF-8.
[[nodiscard]] Result<std::string> detokenize(const DetokenizeBody& request,
                                             const CataloguedModel& model);

// {"count","max_model_len","tokens","token_strs"}.
[[nodiscard]] Result<std::string> answer_tokenize(std::string_view body,
                                                  const ModelCatalogue& models,
                                                  int64_t unix_seconds);
// {"prompt"}
[[nodiscard]] Result<std::string> answer_detokenize(std::string_view body,
                                                    const ModelCatalogue& models);

}  // namespace troupe
