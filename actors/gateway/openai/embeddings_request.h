#pragma once
// POST /v1/embeddings: what was asked for, checked.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/known_fields.h"
#include "actors/gateway/openai/request.h"

namespace troupe {

class CataloguedModel;

struct EmbeddingsBody {
  size_t model = 0;               // index in the rules that the body was checked against
  std::vector<RawPrompt> inputs;  // at least one
  bool one_input = false;         // not an array of inputs: errors name `input` itself
  Pooling pooling = Pooling::kMean;
  std::optional<uint32_t> dimensions;  // the first so many values of each vector
  bool base64 = false;                 // little-endian 32-bit floats; else JSON numbers
  bool normalize = true;               // to length 1
  std::optional<int64_t> truncate;     // the last so many tokens of each input; -1: what fits
  bool add_special_tokens = true;
  std::string cache_salt;
};

// Errors as those of parse_chat_body().
[[nodiscard]] Result<EmbeddingsBody> parse_embeddings_body(std::string_view body,
                                                           std::span<const RequestRules> models);
[[nodiscard]] std::span<const KnownField> embeddings_fields();

// The inputs as tokens. kContextLength and kInvalidArgument name the input by its index.
[[nodiscard]] Result<std::vector<std::vector<TokenId>>> encode_inputs(const EmbeddingsBody& body,
                                                                      const CataloguedModel& model);

}  // namespace troupe
