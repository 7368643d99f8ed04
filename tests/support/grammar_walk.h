#pragma once
// Answers that a grammar allows, made by drawing from its masks at random.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/grammar/grammar_compiler.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// The tokenizer of a model file; aborts when the file cannot be read.
[[nodiscard]] std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path);

struct GrammarWalk {
  bool ended = false;  // else cut off at the limit
  std::string text;    // without the end token
  std::vector<TokenId> tokens;
  Status status;  // not ok: a mask or a step failed, or no token was allowed
};

struct WalkOptions {
  uint64_t seed = 0;
  uint32_t tokens_max = 400;
  // After so many tokens, those are preferred that lead to an end: quotes, brackets, the end token.
  uint32_t hurry_after = 60;
};

// Follows `matcher` from where it stands. A function of the arguments alone.
[[nodiscard]] GrammarWalk walk(GrammarMatcher& matcher, const Tokenizer& tokenizer,
                               const WalkOptions& options);

}  // namespace troupe
