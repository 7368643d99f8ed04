#pragma once
// The fields of the OpenAI endpoints, for docs/api.md.

#include <span>
#include <string_view>

#include "actors/gateway/openai/known_fields.h"

namespace troupe {

[[nodiscard]] std::span<const KnownField> chat_fields();
[[nodiscard]] std::span<const KnownField> completions_fields();
[[nodiscard]] std::span<const KnownField> tokenize_fields();
[[nodiscard]] std::span<const KnownField> detokenize_fields();

// What docs/api.md says of a field that several endpoints share; empty: nothing.
[[nodiscard]] std::string_view shared_note(std::string_view name);

}  // namespace troupe
