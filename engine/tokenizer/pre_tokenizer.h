#pragma once
// Cuts text into the words that byte-pair encoding is applied to, one by one. Each model family has
// a rule: regular expressions that are applied in turn, each to the words that the one before it
// left.

#include <memory>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// What a name in a model file (tokenizer.ggml.pre) stands for.
struct PreTokenizerRule {
  std::string_view name;
  // Applied in this order. What an expression matches is a word, and so is each gap between
  // matches.
  std::vector<std::string_view> patterns;
  // A word that is in the vocabulary as a whole is that token, even if merging would end elsewhere.
  bool whole_words_first = false;
  // Whether prompts begin with bos when the file does not say.
  bool adds_bos = false;
};

// kUnsupported for a name that is not known; the message lists those that are.
[[nodiscard]] Result<PreTokenizerRule> find_pre_tokenizer_rule(std::string_view name);

// Immutable; every method may be called from any thread at any time.
class PreTokenizer final {
 public:
  [[nodiscard]] static Result<std::unique_ptr<PreTokenizer>> create(const PreTokenizerRule& rule);
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  // Appends the words of `text`, which must be UTF-8: views that, joined, are `text`. kInternal
  // when the matcher gives up at its limit, which no expression of ours does (they are linear).
  [[nodiscard]] Status split(std::string_view text, std::vector<std::string_view>& words) const;

 private:
  class Pattern;
  PreTokenizer();
  std::vector<std::unique_ptr<Pattern>> patterns_;
};

}  // namespace troupe
