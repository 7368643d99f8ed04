// How a Tokenizer is made from its description.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/pre_tokenizer.h"
#include "engine/tokenizer/score_merger.h"
#include "engine/tokenizer/space_mark.h"
#include "engine/tokenizer/special_token_finder.h"
#include "engine/tokenizer/string_index.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {
namespace {

// How model families spell the tokens that end a turn or a text. Files often name only one of them
// as "eos" while the model emits another one too.
constexpr std::string_view kEndSpellings[] = {
    "<|endoftext|>", "<|end_of_text|>", "<|im_end|>",         "<|eot_id|>",
    "<|eom_id|>",    "<|end|>",         "<|return|>",         "<|call|>",
    "<EOT>",         "<end_of_turn>",   "<end_of_utterance>", "<|endofturn|>",
    "<|endofuser|>",
};

Status damaged(std::string what) {
  return {StatusCode::kDataLoss,
          "the model's tokenizer is damaged: " + std::move(what) + "; get the file anew"};
}

bool is_special(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         type == TokenType::kUserDefined;
}

// Of the spelling "<0x0A>": the byte; nothing for any other.
std::optional<uint8_t> byte_spelled(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>')
    return std::nullopt;
  uint8_t byte = 0;
  const char* end = spelling.data() + 5;
  const auto [stop, error] = std::from_chars(spelling.data() + 3, end, byte, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return byte;
}

// Appends what a token of a vocabulary with scores stands for.
void append_scored(std::string_view token, TokenType type, std::string& bytes) {
  if (type == TokenType::kByte) {
    if (const auto byte = byte_spelled(token)) {
      bytes += static_cast<char>(*byte);
      return;
    }
  }
  for (size_t at = 0; at < token.size();) {
    const size_t mark = std::min(token.find(kSpaceMark, at), token.size());
    bytes += token.substr(at, mark - at);
    if (mark < token.size()) bytes += ' ';
    at = mark + kSpaceMark.size();
  }
}

// What merges may be spelled with. A control token is never among them: no ordinary text, however
// it is merged, may become one.
StringIndex index_of_ordinary(const TokenizerSpec& spec, const std::vector<TokenType>& types) {
  StringIndex index(spec.tokens.size());
  for (size_t i = 0; i < spec.tokens.size(); ++i)
    if (types[i] != TokenType::kControl && types[i] != TokenType::kUnknown)
      index.set(spec.tokens[i], static_cast<TokenId>(i));
  return index;
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::create(const TokenizerSpec& spec) {
  const bool by_scores = spec.model == "llama";
  if (spec.model != "gpt2" && !by_scores)
    return Status(StatusCode::kUnsupported,
                  "the model's kind of tokenizer (tokenizer.ggml.model) is '" +
                      std::string(spec.model) + "' with pre-tokeniser '" + std::string(spec.pre) +
                      "', but only 'gpt2' (byte-level BPE) and 'llama' (SentencePiece BPE) are "
                      "known; use a model that has one of them");
  std::unique_ptr<Tokenizer> made(new Tokenizer);
  TROUPE_RETURN_IF_ERROR(made->take_tokens(spec));
  TROUPE_RETURN_IF_ERROR(made->take_special_spellings(by_scores));
  if (by_scores) {
    TROUPE_RETURN_IF_ERROR(made->take_scores(spec));
  } else {
    TROUPE_ASSIGN_OR_RETURN(const PreTokenizerRule rule, find_pre_tokenizer_rule(spec.pre));
    TROUPE_ASSIGN_OR_RETURN(made->pre_tokenizer_, PreTokenizer::create(rule));
    TROUPE_RETURN_IF_ERROR(made->take_merges(spec));
    if (rule.whole_words_first) made->take_whole_words();
  }
  TROUPE_RETURN_IF_ERROR(made->take_special_ids(spec));
  return made;
}

Status Tokenizer::take_tokens(const TokenizerSpec& spec) {
  const size_t count = spec.tokens.size();
  if (count == 0 || count > kMaxTokens)
    return damaged("it has " + std::to_string(count) + " tokens; 1 to " +
                   std::to_string(kMaxTokens) + " are possible");
  types_ = spec.types;
  if (types_.empty()) types_.assign(count, TokenType::kNormal);
  if (types_.size() != count)
    return damaged("it has " + std::to_string(count) + " tokens, but types for " +
                   std::to_string(types_.size()));

  size_t size = 0;
  for (const std::string_view token : spec.tokens) size += token.size();
  if (size > kMaxVocabularyBytes)
    return damaged("its tokens take " + std::to_string(size) + " bytes; at most " +
                   std::to_string(kMaxVocabularyBytes) + " are possible");
  const ByteAlphabet alphabet;
  bytes_.reserve(size);  // decoding never makes a token longer
  byte_offsets_ = {0};
  byte_offsets_.reserve(count + 1);
  for (size_t i = 0; i < count; ++i) {
    if (types_[i] < TokenType::kNormal || types_[i] > TokenType::kByte)
      return damaged("token " + std::to_string(i) + " is of type " +
                     std::to_string(static_cast<int32_t>(types_[i])) + "; types are 1 to 6");
    if (spec.model == "llama" && !is_special(types_[i]))
      append_scored(spec.tokens[i], types_[i], bytes_);
    else if (is_special(types_[i]) || !alphabet.decode(spec.tokens[i], bytes_))
      bytes_ += spec.tokens[i];
    byte_offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    longest_token_bytes_ = std::max(longest_token_bytes_, bytes_.size() - byte_offsets_[i]);
  }
  return ok_status();
}

Status Tokenizer::take_special_spellings(bool user_defined_anywhere) {
  std::vector<SpecialTokenFinder::Spelling> spellings;
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!is_special(types_[i])) continue;
    const auto id = static_cast<TokenId>(i);
    const std::string_view spelling = token_bytes(id);
    // A spelling that is no text could cut a character of the text it is found in.
    if (find_invalid_utf8(spelling))
      return damaged("special token " + std::to_string(i) + " is not UTF-8");
    const bool anywhere = user_defined_anywhere && types_[i] == TokenType::kUserDefined;
    if (!spelling.empty()) spellings.push_back({spelling, id, anywhere});
  }
  specials_ = std::make_unique<SpecialTokenFinder>(std::move(spellings));
  return ok_status();
}

Status Tokenizer::take_merges(const TokenizerSpec& spec) {
  if (spec.merges.size() > kMaxMerges)
    return damaged("it has " + std::to_string(spec.merges.size()) + " merges; at most " +
                   std::to_string(kMaxMerges) + " are possible");
  const StringIndex ordinary = index_of_ordinary(spec, types_);
  const ByteAlphabet alphabet;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const TokenId id = ordinary.find(alphabet.spelling(static_cast<uint8_t>(byte)));
    byte_tokens_[byte] = id != kNoToken ? id : static_cast<TokenId>(vocab_size());
  }

  merges_ = std::make_unique<MergeTable>(spec.merges.size());
  std::string both;
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const std::string_view merge = spec.merges[rank];
    const size_t space = merge.find(' ', 1);  // the alphabet has no space
    if (space == std::string_view::npos)
      return damaged("merge " + std::to_string(rank) + " is not two parts with a space between");
    const std::string_view left = merge.substr(0, space), right = merge.substr(space + 1);
    both = left;
    both += right;
    const TokenId left_id = ordinary.find(left), right_id = ordinary.find(right);
    const TokenId merged_id = ordinary.find(both);
    if (left_id == kNoToken || right_id == kNoToken || merged_id == kNoToken)
      return damaged("merge " + std::to_string(rank) + " ('" + to_valid_utf8(merge) +
                     "') has a part or a result that is no token");
    merges_->add(left_id, right_id, merged_id);
  }
  return ok_status();
}

Status Tokenizer::take_scores(const TokenizerSpec& spec) {
  if (spec.scores.size() != vocab_size())
    return damaged("it has " + std::to_string(vocab_size()) + " tokens, but scores for " +
                   std::to_string(spec.scores.size()));
  if (spec.unknown != kNoToken && !has_token(spec.unknown))
    return damaged("its unknown token is " + std::to_string(spec.unknown) + ", but it has " +
                   std::to_string(vocab_size()) + " tokens");
  byte_tokens_.fill(spec.unknown);
  // Neither a control token nor a byte is among the pieces: no ordinary text may become one.
  std::vector<ScoreMerger::Piece> pieces;
  pieces.reserve(vocab_size());
  for (size_t i = 0; i < vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const float score = spec.scores[i];
    if (std::isnan(score)) return damaged("the score of token " + std::to_string(i) + " is nan");
    if (types_[i] == TokenType::kByte) {
      const auto byte = byte_spelled(spec.tokens[i]);
      if (!byte)
        return damaged("token " + std::to_string(i) + " ('" + to_valid_utf8(spec.tokens[i]) +
                       "') stands for a byte, but is not spelled as one, such as <0x0A>");
      byte_tokens_[*byte] = id;
    } else if (!is_special(types_[i]) && !token_bytes(id).empty()) {
      pieces.push_back({token_bytes(id), id, score});
    }
  }
  if (std::count(byte_tokens_.begin(), byte_tokens_.end(), kNoToken) > 0)
    return damaged("it has neither a token for every byte nor one for what is unknown");
  scores_ = std::make_unique<ScoreMerger>(pieces);
  add_space_prefix_ = spec.add_space_prefix;
  return ok_status();
}

Status Tokenizer::take_special_ids(const TokenizerSpec& spec) {
  const std::pair<std::string_view, TokenId> named[] = {
      {"begin-of-sequence", spec.bos}, {"end-of-sequence", spec.eos}, {"end-of-turn", spec.eot},
      {"end-of-message", spec.eom},    {"padding", spec.pad},
  };
  for (const auto& [name, id] : named)
    if (id != kNoToken && !has_token(id))
      return damaged("its " + std::string(name) + " token is " + std::to_string(id) +
                     ", but it has " + std::to_string(vocab_size()) + " tokens");
  if ((spec.add_bos && spec.bos == kNoToken) || (spec.add_eos && spec.eos == kNoToken))
    return damaged("it adds a begin or end token to each prompt without saying which");
  bos_ = spec.bos;
  eos_ = spec.eos;
  pad_ = spec.pad;
  add_bos_ = spec.add_bos;
  add_eos_ = spec.add_eos;

  for (const TokenId id : {spec.eos, spec.eot, spec.eom})
    if (id != kNoToken) end_tokens_.push_back(id);
  for (const std::string_view spelling : kEndSpellings) {
    const TokenId id = find_special(spelling);
    if (id != kNoToken && type(id) == TokenType::kControl) end_tokens_.push_back(id);
  }
  std::sort(end_tokens_.begin(), end_tokens_.end());
  end_tokens_.erase(std::unique(end_tokens_.begin(), end_tokens_.end()), end_tokens_.end());
  return ok_status();
}

void Tokenizer::take_whole_words() {
  whole_words_ = std::make_unique<StringIndex>(vocab_size());
  for (size_t i = 0; i < types_.size(); ++i) {
    const std::string_view bytes = token_bytes(static_cast<TokenId>(i));
    if (types_[i] == TokenType::kNormal && !bytes.empty())
      whole_words_->set(bytes, static_cast<TokenId>(i));
  }
}

}  // namespace troupe
