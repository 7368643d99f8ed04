#pragma once
// Text to token ids and back: byte-level BPE as GPT-2 introduced it (Radford et al. 2019), with the
// pre-tokeniser rules of the model families that use it, and SentencePiece's BPE by scores. The ids
// are those of llama.cpp.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/tokenizer/tokenizer_spec.h"
#include "troupe/status.h"

namespace troupe {

class MergeTable;
class PreTokenizer;
class ScoreMerger;
class SpecialTokenFinder;
class StringIndex;

// A run of text and whether the spellings of special tokens in it mean these tokens. A chat
// template's own text does; what a user wrote does not, so that a user who spells "<|im_end|>" has
// written these ten characters and ended no turn. (User-defined tokens of a vocabulary with scores
// are ordinary text that is one token, such as a run of line feeds: they count everywhere.)
struct TextPiece {
  std::string_view text;
  bool parse_special = false;
};

struct EncodeOptions {
  // Add the begin (end) token where the model asks for it. A begin token that the text itself
  // spells first is not doubled.
  bool add_special = true;
};

// Immutable after creation; every method may be called from any thread at any time.
class Tokenizer final {
 public:
  // Text of one encode() call, all pieces together. Bounds its memory at about 50 times this.
  static constexpr size_t kMaxTextBytes = size_t{4} << 20;
  static constexpr size_t kMaxTokens = size_t{1} << 21;
  static constexpr size_t kMaxMerges = size_t{1} << 22;
  static constexpr size_t kMaxVocabularyBytes = size_t{256} << 20;  // all tokens together

  // kUnsupported: a kind of vocabulary or a pre-tokeniser that is not known, named in the message.
  // kDataLoss: the vocabulary contradicts itself.
  [[nodiscard]] static Result<std::unique_ptr<Tokenizer>> create(const TokenizerSpec& spec);
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // The pieces are consecutive runs of one text. Ordinary text is joined across pieces before it is
  // split into words, so where the pieces meet does not change the ids. Text of pieces that follow
  // each other directly and both parse special tokens is joined before they are looked for; where
  // two spellings overlap the first one wins, and of two that start together the longer one.
  // kInvalidArgument: not UTF-8 (names the byte's offset in the joined text), or above
  // kMaxTextBytes.
  [[nodiscard]] Result<std::vector<TokenId>> encode(std::span<const TextPiece> pieces,
                                                    const EncodeOptions& options = {}) const;
  [[nodiscard]] Result<std::vector<TokenId>> encode(const TextPiece& piece,
                                                    const EncodeOptions& options = {}) const {
    return encode(std::span(&piece, 1), options);
  }

  // The raw bytes that the token stands for: for most a part of UTF-8 text, possibly of a
  // character; for a special token its spelling. The view lives as long as the tokenizer. Asserts
  // has_token(id).
  [[nodiscard]] std::string_view token_bytes(TokenId id) const;

  // The joined bytes of all tokens, special ones spelled: decode(encode(text)) == text when no
  // token was added, but for U+2581 where scores are used, which is a space to them. Need not be
  // UTF-8 when the ids are arbitrary; see IncrementalDetokenizer for text. kInvalidArgument: an id
  // outside the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const TokenId> ids) const;

  [[nodiscard]] size_t vocab_size() const { return types_.size(); }
  // A text of n bytes takes at least n / longest_token_bytes() tokens: one that can not fit a
  // context is refused without encoding it. (Exact only for text whose every byte has a token.)
  [[nodiscard]] size_t longest_token_bytes() const { return longest_token_bytes_; }
  [[nodiscard]] bool has_token(TokenId id) const {
    return id >= 0 && static_cast<size_t>(id) < types_.size();
  }
  [[nodiscard]] TokenType type(TokenId id) const;
  // Control and unknown tokens: hidden from text made for a person.
  [[nodiscard]] bool is_hidden(TokenId id) const;

  // kNoToken where the model has none.
  [[nodiscard]] TokenId bos() const { return bos_; }
  [[nodiscard]] TokenId eos() const { return eos_; }
  [[nodiscard]] TokenId pad() const { return pad_; }
  [[nodiscard]] bool adds_bos() const { return add_bos_; }
  // The tokens that end a generation: eos, eot and eom of the file and the control tokens that
  // model families use for it under a well-known name. Ascending, without doubles.
  [[nodiscard]] const std::vector<TokenId>& end_tokens() const { return end_tokens_; }
  // The token of exactly this spelling (raw bytes) among the special ones, or kNoToken.
  [[nodiscard]] TokenId find_special(std::string_view spelling) const;

 private:
  Tokenizer();
  // The parts of create(), in its order; in tokenizer_load.cc.
  [[nodiscard]] Status take_tokens(const TokenizerSpec& spec);
  [[nodiscard]] Status take_special_spellings(bool user_defined_anywhere);
  [[nodiscard]] Status take_merges(const TokenizerSpec& spec);
  [[nodiscard]] Status take_scores(const TokenizerSpec& spec);
  [[nodiscard]] Status take_special_ids(const TokenizerSpec& spec);
  void take_whole_words();
  // Append the ids of ordinary text that is known to be UTF-8.
  [[nodiscard]] Status encode_ordinary(std::string_view text, std::vector<TokenId>& ids) const;
  void encode_by_scores(std::string_view text, std::vector<TokenId>& ids) const;
  [[nodiscard]] bool stands_for_itself(TokenId id) const;

  std::string bytes_;                   // the tokens' raw bytes, one after the other
  std::vector<uint32_t> byte_offsets_;  // token i is [byte_offsets_[i], byte_offsets_[i + 1])
  size_t longest_token_bytes_ = 0;
  std::vector<TokenType> types_;
  // The token of each single byte. A byte without one has the id vocab_size(): no merge knows that
  // id. With scores it has the unknown token.
  std::array<TokenId, 256> byte_tokens_{};
  std::unique_ptr<MergeTable> merges_;
  std::unique_ptr<StringIndex> whole_words_;  // null unless the rule takes whole words first
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<ScoreMerger> scores_;  // then merges_, whole_words_ and pre_tokenizer_ are null
  std::unique_ptr<SpecialTokenFinder> specials_;
  std::vector<TokenId> end_tokens_;
  TokenId bos_ = kNoToken, eos_ = kNoToken, pad_ = kNoToken;
  bool add_bos_ = false, add_eos_ = false, add_space_prefix_ = false;
};

}  // namespace troupe
