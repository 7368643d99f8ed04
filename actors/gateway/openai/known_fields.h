#pragma once
// The names of the fields that an object may have.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

enum class FieldUse {
  kUsed,         // read by the parser
  kTolerated,    // sent by common clients, without effect here
  kUnsupported,  // OpenAI's or vLLM's, not here: refused unless null, false or empty
};

struct KnownField {
  std::string_view name;
  FieldUse use = FieldUse::kUsed;
  std::string_view note = {};  // for docs/api.md: one line of Markdown, in our own words
};

// Checks every field of `object`, whose path is `prefix` ("" or "a.b."). Only the first fault is
// reported: kInvalidArgument for an unknown name, with the nearest known one, if any is near;
// kUnsupported for the third kind.
[[nodiscard]] Status check_known_fields(const nlohmann::ordered_json& object,
                                        std::string_view prefix, std::span<const KnownField> known);

// Insertions, deletions and substitutions between two names (Levenshtein 1966). O(|a| |b|); both
// are cut at 64 bytes.
[[nodiscard]] size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace troupe
