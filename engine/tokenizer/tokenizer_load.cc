// How a Tokenizer is made from its description.

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/tokenizer/byte_alphabet.h"
#include "engine/tokenizer/detokenizer.h"
#include "engine/tokenizer/merge_table.h"
#include "engine/tokenizer/pre_tokenizer.h"
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

bool stands_for_itself(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown ||
         type == TokenType::kUserDefined;
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
  if (spec.model != "gpt2")
    return Status(StatusCode::kUnsupported,
                  "the model's kind of tokenizer (tokenizer.ggml.model) is '" +
                      std::string(spec.model) + "' with pre-tokeniser '" + std::string(spec.pre) +
                      "', but only 'gpt2' (byte-level BPE) is known; use a model that has it");
  TROUPE_ASSIGN_OR_RETURN(const PreTokenizerRule rule, find_pre_tokenizer_rule(spec.pre));
  std::unique_ptr<Tokenizer> made(new Tokenizer);
  TROUPE_ASSIGN_OR_RETURN(made->pre_tokenizer_, PreTokenizer::create(rule));
  TROUPE_RETURN_IF_ERROR(made->take_tokens(spec));
  TROUPE_RETURN_IF_ERROR(made->take_special_spellings());
  TROUPE_RETURN_IF_ERROR(made->take_merges(spec));
  TROUPE_RETURN_IF_ERROR(made->take_special_ids(spec));
  if (rule.whole_words_first) made->take_whole_words();
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
    if (stands_for_itself(types_[i]) || !alphabet.decode(spec.tokens[i], bytes_))
      bytes_ += spec.tokens[i];
    byte_offsets_.push_back(static_cast<uint32_t>(bytes_.size()));
    longest_token_bytes_ = std::max(longest_token_bytes_, bytes_.size() - byte_offsets_[i]);
  }
  return ok_status();
}

Status Tokenizer::take_special_spellings() {
  std::vector<SpecialTokenFinder::Spelling> spellings;
  for (size_t i = 0; i < types_.size(); ++i) {
    if (!stands_for_itself(types_[i])) continue;
    const auto id = static_cast<TokenId>(i);
    const std::string_view spelling = token_bytes(id);
    // A spelling that is no text could cut a character of the text it is found in.
    if (find_invalid_utf8(spelling))
      return damaged("special token " + std::to_string(i) + " is not UTF-8");
    if (!spelling.empty()) spellings.push_back({spelling, id});
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
