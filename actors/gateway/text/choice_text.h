#pragma once
// The text of one generated continuation, from its tokens: whole characters only, control tokens
// hidden, ended by the first stop string.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/gateway/text/stop_matcher.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

struct ChoiceTextOptions {
  std::vector<std::string> stops;
  StopText stop_text = StopText::kExclude;
  // Tokens that end the sequence; their text is shown only with StopText::kInclude.
  std::vector<TokenId> stop_token_ids;
  // Control tokens that are shown as they are spelled.
  std::vector<TokenId> spelled;
};

// One per choice. The joined results of append() and finish() are the choice's text, the same
// however its tokens were grouped.
class ChoiceText final {
 public:
  // `tokenizer` outlives this object.
  ChoiceText(const Tokenizer& tokenizer, ChoiceTextOptions options);

  // Takes the next token and returns what can be shown now. Not to be called once stopped() is true
  // or after finish().
  [[nodiscard]] std::string append(TokenId token);
  // The sequence ended: returns the rest. May still find a stop string.
  [[nodiscard]] std::string finish();

  // A stop string was found: the choice has ended with it, whatever the sequence goes on to say.
  [[nodiscard]] bool stopped() const { return matcher_.matched(); }
  // Which one, or empty.
  [[nodiscard]] const std::string& stop_string() const { return matcher_.found(); }
  // Tokens taken.
  [[nodiscard]] uint32_t token_count() const { return token_count_; }
  // Characters (code points) decoded so far, also those held back or cut: where the next token's
  // text begins.
  [[nodiscard]] size_t characters() const { return characters_; }

 private:
  [[nodiscard]] std::string show(const std::string& decoded);

  std::vector<TokenId> hidden_;  // stop tokens whose text is not shown
  std::vector<TokenId> spelled_;
  IncrementalDetokenizer detokenizer_;
  StopMatcher matcher_;
  uint32_t token_count_ = 0;
  size_t characters_ = 0;
  bool finished_ = false;
};

}  // namespace troupe
