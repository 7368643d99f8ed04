#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/grammar/check_grammar.h"
#include "engine/grammar/grammar_compiler.h"
#include "engine/grammar/limits.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {
namespace {

constexpr size_t kErrorBytesMax = 500;  // of the library's own text

// Runs a call into the library; what it throws becomes a status.
template <class Call>
auto guarded(StatusCode code, Call&& call) -> Result<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& error) {
    return Status{code,
                  "the grammar's library: " + std::string(error.what()).substr(0, kErrorBytesMax)};
  }
}

class Matcher final : public GrammarMatcher {
 public:
  Matcher(xgrammar::GrammarMatcher matcher, uint32_t vocab_size)
      : matcher_(std::move(matcher)), vocab_size_(vocab_size) {}

  Status fill_mask(std::span<uint32_t> mask) override {
    TROUPE_ASSERT(mask.size() == mask_words(vocab_size_), mask.size(), vocab_size_);
    TROUPE_ASSERT(!ended(), accepted_);
    int64_t shape = static_cast<int64_t>(mask.size());
    DLTensor tensor{};
    tensor.data = mask.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = 1;
    tensor.dtype = xgrammar::GetBitmaskDLType();
    tensor.shape = &shape;
    const auto filled = guarded(StatusCode::kInternal, [&] {
      const bool restricts = matcher_.FillNextTokenBitmask(&tensor);
      // Where every token is allowed it leaves the mask as it was.
      if (!restricts) std::fill(mask.begin(), mask.end(), ~uint32_t{0});
      return true;
    });
    if (!filled.ok()) return filled.status();
    if (const uint32_t rest = vocab_size_ % 32; rest != 0) mask.back() &= (uint32_t{1} << rest) - 1;
    return ok_status();
  }

  Status accept(TokenId token) override {
    TROUPE_ASSERT(!ended(), accepted_);
    const auto accepted =
        guarded(StatusCode::kInternal, [&] { return matcher_.AcceptToken(token); });
    if (!accepted.ok()) return accepted.status();
    if (!accepted.value()) {
      return {StatusCode::kInternal, "token " + std::to_string(token) +
                                         " was chosen against the grammar, after " +
                                         std::to_string(accepted_) + " others"};
    }
    ++accepted_;
    return ok_status();
  }

  bool ended() const override { return matcher_.IsTerminated(); }
  uint32_t accepted() const override { return accepted_; }

 private:
  xgrammar::GrammarMatcher matcher_;
  const uint32_t vocab_size_;
  uint32_t accepted_ = 0;
};

class Compiled final : public CompiledGrammar {
 public:
  Compiled(xgrammar::CompiledGrammar grammar, uint32_t vocab_size)
      : grammar_(std::move(grammar)), vocab_size_(vocab_size) {}

  Result<std::unique_ptr<GrammarMatcher>> start(std::span<const TokenId> output) const override {
    auto matcher = guarded(StatusCode::kInternal, [this] {
      // Nothing is ever taken back, so nothing is kept for it.
      return xgrammar::GrammarMatcher(grammar_, std::nullopt, false, 0);
    });
    if (!matcher.ok()) return matcher.status();
    auto started = std::make_unique<Matcher>(std::move(matcher).value(), vocab_size_);
    for (const TokenId token : output) {
      if (started->ended()) break;
      const Status status = started->accept(token);
      if (!status.ok()) return invalid_argument(status.message());
    }
    if (started->ended())
      return invalid_argument("the output so far ends the grammar: nothing can follow it");
    return std::unique_ptr<GrammarMatcher>(std::move(started));
  }

 private:
  const xgrammar::CompiledGrammar grammar_;
  const uint32_t vocab_size_;
};

class Compiler final : public GrammarCompiler {
 public:
  Compiler(const xgrammar::TokenizerInfo& tokenizer, uint32_t vocab_size)
      : compiler_(tokenizer, /*max_threads=*/1, /*cache_enabled=*/true,
                  static_cast<int64_t>(grammar_limits::kCacheBytesMax),
                  /*enable_dynamic_compilation=*/true),
        vocab_size_(vocab_size) {}

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSpec& spec) override {
    TROUPE_ASSIGN_OR_RETURN(const GrammarText lowered, lower_grammar(spec));
    auto compiled = guarded(StatusCode::kInvalidArgument, [&] {
      return lowered.is_structural_tag ? compiler_.CompileStructuralTag(lowered.text)
                                       : compiler_.CompileGrammar(lowered.text, "root");
    });
    if (!compiled.ok()) return compiled.status();
    return std::shared_ptr<const CompiledGrammar>(
        std::make_shared<Compiled>(std::move(compiled).value(), vocab_size_));
  }

 private:
  xgrammar::GrammarCompiler compiler_;
  const uint32_t vocab_size_;
};

class Vocabulary final : public GrammarVocabulary {
 public:
  Vocabulary(xgrammar::TokenizerInfo tokenizer, uint32_t vocab_size)
      : tokenizer_(std::move(tokenizer)), vocab_size_(vocab_size) {}

  std::unique_ptr<GrammarCompiler> make_compiler() const override {
    return std::make_unique<Compiler>(tokenizer_, vocab_size_);
  }
  size_t vocab_size() const override { return vocab_size_; }

 private:
  const xgrammar::TokenizerInfo tokenizer_;
  const uint32_t vocab_size_;
};

}  // namespace

Result<std::shared_ptr<const GrammarVocabulary>> make_xgrammar_vocabulary(
    const Tokenizer& tokenizer, uint32_t vocab_size) {
  TROUPE_ASSERT(vocab_size > 0);
  if (tokenizer.end_tokens().empty()) {
    return Status{StatusCode::kUnsupported,
                  "structured output needs an end token, and this model's vocabulary has none"};
  }
  std::vector<std::string> tokens(vocab_size);
  const auto known = static_cast<TokenId>(std::min<size_t>(vocab_size, tokenizer.vocab_size()));
  for (TokenId id = 0; id < known; ++id) {
    // An empty token is never allowed. Unused ones have no meaning to the model.
    const bool is_text = !tokenizer.is_hidden(id) && tokenizer.type(id) != TokenType::kUnused;
    if (is_text) tokens[static_cast<size_t>(id)] = std::string(tokenizer.token_bytes(id));
  }
  const std::vector<int32_t> ends(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  TROUPE_ASSIGN_OR_RETURN(auto info, guarded(StatusCode::kInternal, [&] {
                            return xgrammar::TokenizerInfo(tokens, xgrammar::VocabType::RAW,
                                                           static_cast<int>(vocab_size), ends);
                          }));
  return std::shared_ptr<const GrammarVocabulary>(
      std::make_shared<Vocabulary>(std::move(info), vocab_size));
}

}  // namespace troupe
