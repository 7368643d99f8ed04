#pragma once
// Token ids to text for a person, token by token: what append() returns is always whole UTF-8
// characters, and the pieces joined are the same text however the ids were grouped.

#include <array>
#include <string>

#include "base/ids.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

enum class SpecialTokens {
  kSkip,   // control and unknown tokens leave no text
  kSpell,  // they appear as they are spelled
};

// One per generated sequence; knows nothing of the prompt. A prompt may end inside a character:
// then the output begins with continuation bytes without a lead, and each of them becomes one
// U+FFFD, as would any other byte that is not UTF-8 (Unicode's "maximal subpart" practice, which is
// also that of Python's and of browsers' decoders). A character that is still incomplete is held
// back; a U+FFFD that the model spells in full passes like any character.
class IncrementalDetokenizer final {
 public:
  // `tokenizer` outlives this object.
  IncrementalDetokenizer(const Tokenizer& tokenizer, SpecialTokens special_tokens)
      : tokenizer_(&tokenizer), special_tokens_(special_tokens) {}

  // Appends to `text` what became certain with this token; O(bytes of the token). Asserts that the
  // token is in the vocabulary.
  void append(TokenId token, std::string& text);
  // The same, but a control token appears as it is spelled whatever the constructor was told.
  void spell(TokenId token, std::string& text);
  [[nodiscard]] std::string append(TokenId token) {
    std::string text;
    append(token, text);
    return text;
  }
  // The end of the sequence: an incomplete character becomes one U+FFFD. Ready for a new sequence.
  [[nodiscard]] std::string flush();

 private:
  const Tokenizer* tokenizer_;
  SpecialTokens special_tokens_;
  std::array<char, 3> held_{};  // the first bytes of an incomplete character
  uint8_t held_size_ = 0;
};

// The bytes as UTF-8 text, with U+FFFD for what is not UTF-8 (same rule as above).
[[nodiscard]] std::string to_valid_utf8(std::string_view bytes);

}  // namespace troupe
