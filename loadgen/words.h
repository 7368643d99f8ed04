#pragma once
// Prompts of a wanted length, made of words that are one token each in the vocabularies in use.

#include <cstdint>
#include <string>
#include <vector>

#include "loadgen/random.h"
#include "troupe/status.h"

namespace troupe::loadgen {

// Common short English words, none twice.
[[nodiscard]] const std::vector<std::string>& common_words();

// `count` words with a blank between each two, drawn from `words`, which must not be empty.
[[nodiscard]] std::string random_words(const std::vector<std::string>& words, uint64_t count,
                                       Random& random);

// A fixed number of tokens, or one drawn evenly from a range with both ends.
struct LengthRange {
  uint32_t least = 0, most = 0;
  [[nodiscard]] bool is_fixed() const { return least == most; }
  [[nodiscard]] uint32_t draw(Random& random) const {
    return static_cast<uint32_t>(random.between(least, most));
  }
  bool operator==(const LengthRange&) const = default;
};
// "128" or "64:256". kInvalidArgument names `flag`, the rule and the fix.
[[nodiscard]] Result<LengthRange> parse_length_range(const std::string& flag,
                                                     const std::string& text);

}  // namespace troupe::loadgen
