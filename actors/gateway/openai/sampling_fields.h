#pragma once
// The sampling parameters of a request body.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/gateway/openai/field_reader.h"
#include "engine/sample/sampling_params.h"
#include "troupe/status.h"

namespace troupe {

// temperature, top_p, top_k, min_p, the penalties, logit_bias, stop_token_ids, ignore_eos and
// min_tokens. Fields that are absent keep what `out` holds.
[[nodiscard]] Status parse_sampling_fields(const FieldReader& fields, uint32_t vocab_size,
                                           SamplingParams& out);

// Any integer of 64 bits, signed or unsigned.
[[nodiscard]] Status parse_seed(const FieldReader& fields, std::optional<uint64_t>& out);

// "must be a number in [0, 2]" for the field of this name, or empty. For errors that are found
// before the value can be read, such as NaN, which is not JSON.
[[nodiscard]] std::string sampling_rule(std::string_view name);

}  // namespace troupe
