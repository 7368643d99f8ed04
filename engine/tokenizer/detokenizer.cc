#include "engine/tokenizer/detokenizer.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {
namespace {

// Moves the certain part of `bytes` to `text`, and returns the incomplete character at its end.
std::string_view move_certain(std::string_view bytes, std::string& text) {
  while (!bytes.empty()) {
    const Utf8Prefix prefix = utf8_prefix(bytes);
    if (prefix.kind == Utf8Kind::kIncomplete) break;
    text +=
        prefix.kind == Utf8Kind::kCharacter ? bytes.substr(0, prefix.size) : kReplacementCharacter;
    bytes.remove_prefix(prefix.size);
  }
  return bytes;
}

}  // namespace

void IncrementalDetokenizer::append(TokenId token, std::string& text) {
  if (special_tokens_ == SpecialTokens::kSkip && tokenizer_->is_hidden(token)) return;
  spell(token, text);
}

void IncrementalDetokenizer::spell(TokenId token, std::string& text) {
  std::string_view bytes = tokenizer_->token_bytes(token);

  // A held beginning grows byte by byte until its fate is certain: at most two more are needed.
  while (held_size_ > 0 && !bytes.empty()) {
    std::array<char, 4> joined{};
    std::copy_n(held_.begin(), held_size_, joined.begin());
    joined[held_size_] = bytes.front();
    const Utf8Prefix prefix = utf8_prefix({joined.data(), held_size_ + size_t{1}});
    if (prefix.kind == Utf8Kind::kInvalid) {
      // Held bytes alone were a possible beginning, so the new byte is what broke it.
      TROUPE_ASSERT(prefix.size == held_size_, prefix.size, int{held_size_});
      text += kReplacementCharacter;
      held_size_ = 0;
      break;  // the new byte may begin something of its own
    }
    bytes.remove_prefix(1);
    if (prefix.kind == Utf8Kind::kCharacter) {
      text.append(joined.data(), prefix.size);
      held_size_ = 0;
    } else {
      held_[held_size_] = joined[held_size_];
      ++held_size_;
    }
  }

  const std::string_view rest = move_certain(bytes, text);
  if (rest.empty()) return;
  TROUPE_ASSERT(held_size_ == 0 && rest.size() <= held_.size(), int{held_size_}, rest.size());
  std::copy(rest.begin(), rest.end(), held_.begin());
  held_size_ = static_cast<uint8_t>(rest.size());
}

std::string IncrementalDetokenizer::flush() {
  const bool incomplete = held_size_ > 0;
  held_size_ = 0;
  return std::string(incomplete ? kReplacementCharacter : std::string_view());
}

std::string to_valid_utf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  if (!move_certain(bytes, text).empty()) text += kReplacementCharacter;
  return text;
}

}  // namespace troupe
