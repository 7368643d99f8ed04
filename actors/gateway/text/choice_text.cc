#include "actors/gateway/text/choice_text.h"

#include <algorithm>
#include <utility>

#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {

ChoiceText::ChoiceText(const Tokenizer& tokenizer, ChoiceTextOptions options)
    : hidden_(options.stop_text == StopText::kExclude ? std::move(options.stop_token_ids)
                                                      : std::vector<TokenId>()),
      spelled_(std::move(options.spelled)),
      detokenizer_(tokenizer, SpecialTokens::kSkip),
      matcher_(std::move(options.stops), options.stop_text) {}

std::string ChoiceText::append(TokenId token) {
  TROUPE_ASSERT(!finished_ && !stopped(), finished_, token);
  ++token_count_;
  if (std::find(hidden_.begin(), hidden_.end(), token) != hidden_.end()) return {};
  if (std::find(spelled_.begin(), spelled_.end(), token) == spelled_.end()) {
    return show(detokenizer_.append(token));
  }
  std::string text;
  detokenizer_.spell(token, text);
  return show(text);
}

std::string ChoiceText::finish() {
  TROUPE_ASSERT(!finished_, token_count_);
  finished_ = true;
  std::string text = show(detokenizer_.flush());
  text += matcher_.flush();
  return text;
}

std::string ChoiceText::show(const std::string& decoded) {
  characters_ += count_code_points(decoded);
  return matcher_.push(decoded);
}

}  // namespace troupe
