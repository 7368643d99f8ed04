#pragma once
// What a model file says about its tokenizer, as plain values: the tokenizer is built from this and
// from nothing else, so that tests and other file formats need no GGUF file.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace troupe {

// The numbers are those that GGUF files store (tokenizer.ggml.token_type).
enum class TokenType : int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // steers the model; never shown to a person
  kUserDefined = 4,  // added to the vocabulary by name; shown, and recognised like a control token
                     // (with scores: also in a user's text)
  kUnused = 5,
  kByte = 6,
};

inline constexpr TokenId kNoToken = -1;

// The views point into memory of whoever made the spec; the tokenizer copies what it keeps, so they
// need to live only until Tokenizer::create() has returned.
struct TokenizerSpec {
  // tokenizer.ggml.model: "gpt2" is byte-level BPE with words and merges, "llama" is
  // SentencePiece's BPE by scores.
  std::string_view model;
  std::string_view pre;  // of gpt2: tokenizer.ggml.pre, names the pre-tokeniser's rule
  // Index = token id. Spelled in GPT-2's byte alphabet; of llama with U+2581 for a space, and bytes
  // as "<0x0A>".
  std::vector<std::string_view> tokens;
  std::vector<TokenType> types;          // one per token, or empty: all are normal
  std::vector<std::string_view> merges;  // of gpt2: "left right"; index = rank, the lowest is first
  std::vector<float> scores;             // of llama: one per token, the highest is merged first
  TokenId unknown = kNoToken;            // of llama: for bytes that have no token
  TokenId bos = kNoToken;                // begin of sequence
  TokenId eos = kNoToken;                // end of sequence
  TokenId eot = kNoToken;                // end of turn
  TokenId eom = kNoToken;                // end of message (a tool is asked)
  TokenId pad = kNoToken;
  bool add_bos = false;  // every prompt starts with `bos`
  bool add_eos = false;  // every prompt ends with `eos`
  // Of llama: text at the beginning and after each special token gets a space before it.
  bool add_space_prefix = false;
};

}  // namespace troupe
