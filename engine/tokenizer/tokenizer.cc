#include "engine/tokenizer/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/assert.h"
#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/score_merger.h"
#include "engine/tokenizer/space_mark.h"
#include "engine/tokenizer/special_token_finder.h"
#include "engine/tokenizer/string_index.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {
namespace {

// The pieces' text joined, and the ranges of it in which special tokens are looked for.
struct JoinedText {
  std::string text;
  std::vector<SpecialTokenFinder::Range> special;
};

Result<JoinedText> join(std::span<const TextPiece> pieces) {
  size_t size = 0;
  for (const TextPiece& piece : pieces) {
    size += piece.text.size();
    if (size > Tokenizer::kMaxTextBytes)
      return invalid_argument("the text has more than " + std::to_string(Tokenizer::kMaxTextBytes) +
                              " bytes, the most that is tokenised at once; shorten it");
  }
  JoinedText joined;
  joined.text.reserve(size);
  for (const TextPiece& piece : pieces) {
    if (piece.text.empty()) continue;
    const size_t begin = joined.text.size();
    joined.text += piece.text;
    if (!piece.parse_special) continue;
    if (!joined.special.empty() && joined.special.back().end == begin)
      joined.special.back().end = joined.text.size();
    else
      joined.special.push_back({begin, joined.text.size()});
  }
  if (const auto offset = find_invalid_utf8(joined.text))
    return invalid_argument("the text is not valid UTF-8: its byte " + std::to_string(*offset) +
                            " belongs to no character; send it encoded as UTF-8");
  return joined;
}

}  // namespace

Tokenizer::Tokenizer() = default;
Tokenizer::~Tokenizer() = default;

Result<std::vector<TokenId>> Tokenizer::encode(std::span<const TextPiece> pieces,
                                               const EncodeOptions& options) const {
  TROUPE_ASSIGN_OR_RETURN(const JoinedText joined, join(pieces));
  const std::string_view text = joined.text;
  std::vector<TokenId> ids;
  size_t done = 0;  // text before this is encoded
  while (const auto hit = specials_->find(text, done, joined.special)) {
    TROUPE_RETURN_IF_ERROR(encode_ordinary(text.substr(done, hit->begin - done), ids));
    ids.push_back(hit->id);
    done = hit->end;
  }
  TROUPE_RETURN_IF_ERROR(encode_ordinary(text.substr(done), ids));

  if (options.add_special && add_bos_ && (ids.empty() || ids.front() != bos_))
    ids.insert(ids.begin(), bos_);
  if (options.add_special && add_eos_ && (ids.empty() || ids.back() != eos_)) ids.push_back(eos_);
  return ids;
}

Status Tokenizer::encode_ordinary(std::string_view text, std::vector<TokenId>& ids) const {
  if (text.empty()) return ok_status();
  if (scores_) {
    encode_by_scores(text, ids);
    return ok_status();
  }
  std::vector<std::string_view> words;
  TROUPE_RETURN_IF_ERROR(pre_tokenizer_->split(text, words));
  std::vector<TokenId> symbols;
  MergeTable::Scratch scratch;
  for (const std::string_view word : words) {
    if (whole_words_) {
      if (const TokenId whole = whole_words_->find(word); whole != kNoToken) {
        ids.push_back(whole);
        continue;
      }
    }
    symbols.clear();
    for (const char c : word) symbols.push_back(byte_tokens_[static_cast<uint8_t>(c)]);
    merges_->apply(symbols, scratch);
    std::copy_if(symbols.begin(), symbols.end(), std::back_inserter(ids),
                 [this](TokenId id) { return has_token(id); });
  }
  return ok_status();
}

void Tokenizer::encode_by_scores(std::string_view text, std::vector<TokenId>& ids) const {
  std::string spaced(add_space_prefix_ ? " " : "");
  // The vocabulary spells a space U+2581, so the two are one to it.
  for (size_t at = 0; at < text.size();) {
    const size_t mark = text.find(kSpaceMark, at);
    spaced += text.substr(at, mark - at);
    if (mark == std::string_view::npos) break;
    spaced += ' ';
    at = mark + kSpaceMark.size();
  }
  std::vector<ScoreMerger::Part> parts;
  scores_->split(spaced, parts);
  for (const ScoreMerger::Part& part : parts) {
    if (part.id != kNoToken) {
      ids.push_back(part.id);
      continue;
    }
    for (const char c : part.text) ids.push_back(byte_tokens_[static_cast<uint8_t>(c)]);
  }
}

std::string_view Tokenizer::token_bytes(TokenId id) const {
  TROUPE_ASSERT(has_token(id), id, vocab_size());
  const uint32_t begin = byte_offsets_[static_cast<size_t>(id)];
  const uint32_t end = byte_offsets_[static_cast<size_t>(id) + 1];
  return std::string_view(bytes_).substr(begin, end - begin);
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids) const {
  std::string bytes;
  bool space_added = add_space_prefix_;  // by encode(), before the next token
  for (const TokenId id : ids) {
    if (!has_token(id))
      return invalid_argument("token id " + std::to_string(id) + " is not in the vocabulary of " +
                              std::to_string(vocab_size()) + " tokens; ids start at 0");
    std::string_view piece = token_bytes(id);
    const bool special = stands_for_itself(id);
    if (space_added && !special && piece.starts_with(' ')) piece.remove_prefix(1);
    space_added = add_space_prefix_ && special;
    bytes += piece;
  }
  return bytes;
}

bool Tokenizer::stands_for_itself(TokenId id) const {
  return is_hidden(id) || type(id) == TokenType::kUserDefined;
}

TokenType Tokenizer::type(TokenId id) const {
  TROUPE_ASSERT(has_token(id), id, vocab_size());
  return types_[static_cast<size_t>(id)];
}

bool Tokenizer::is_hidden(TokenId id) const {
  return type(id) == TokenType::kControl || type(id) == TokenType::kUnknown;
}

TokenId Tokenizer::find_special(std::string_view spelling) const {
  return specials_->find_exact(spelling);
}

}  // namespace troupe
