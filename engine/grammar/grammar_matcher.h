#pragma once
// Where one answer stands in its grammar.

#include <cstdint>
#include <span>

#include "base/ids.h"
#include "troupe/status.h"

namespace troupe {

// Words of a mask over a vocabulary.
[[nodiscard]] constexpr size_t mask_words(size_t vocab_size) {
  return (vocab_size + 31) / 32;
}

// A state machine that follows the output tokens of one sequence. One thread at a time.
class GrammarMatcher {
 public:
  virtual ~GrammarMatcher() = default;

  // Sets bit t % 32 of word t / 32 for every token t that may come next, and clears the others.
  // `mask` has mask_words(vocab_size) words; bits beyond the vocabulary are cleared. End tokens are
  // allowed where the answer may end. kInternal: a failure of the compiler's library.
  // Precondition: !ended().
  [[nodiscard]] virtual Status fill_mask(std::span<uint32_t> mask) = 0;

  // Goes on by a token that the mask allows. kInternal when the grammar does not allow it: the
  // matcher is of no use any more. Precondition: !ended().
  [[nodiscard]] virtual Status accept(TokenId token) = 0;

  // An end token was accepted: nothing may follow.
  [[nodiscard]] virtual bool ended() const = 0;
  // Tokens accepted so far.
  [[nodiscard]] virtual uint32_t accepted() const = 0;
};

}  // namespace troupe
