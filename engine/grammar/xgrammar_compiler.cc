#include <xgrammar/xgrammar.h>

#include <algorithm>
#include <bit>
#include <exception>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "engine/grammar/check_grammar.h"
#include "engine/grammar/grammar_compiler.h"
#include "engine/grammar/limits.h"
#include "engine/grammar/markers.h"
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

// What is known of the vocabulary besides xgrammar's view of it.
struct Tokens {
  uint32_t count = 0;
  // Bytes of the tokens that are white space and nothing else, by token.
  std::map<TokenId, uint32_t> blanks;
  // Control tokens among kGrammarMarkers. They vanish from an answer's text, so only structural
  // tags, which are read token by token, may have them.
  std::vector<TokenId> hidden_markers;
};

// Where more than this part of the vocabulary may come, a structural tag is in prose or a string.
constexpr uint32_t kProseShare = 4;

class Matcher final : public GrammarMatcher {
 public:
  Matcher(xgrammar::GrammarMatcher matcher, std::shared_ptr<const Tokens> tokens, GrammarKind kind)
      : matcher_(std::move(matcher)),
        tokens_(std::move(tokens)),
        vocab_size_(tokens_->count),
        is_json_(kind == GrammarKind::kJsonObject || kind == GrammarKind::kJsonSchema),
        has_markers_(kind == GrammarKind::kStructuralTag) {}

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
    if (!has_markers_) {
      for (const TokenId token : tokens_->hidden_markers) forbid(token, mask);
    }
    if ((is_json_ || has_markers_) && blank_bytes_ >= grammar_limits::kWhiteSpaceMax)
      forbid_blanks(mask);
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
    const auto blank = tokens_->blanks.find(token);
    blank_bytes_ = blank == tokens_->blanks.end() ? 0 : blank_bytes_ + blank->second;
    return ok_status();
  }

  bool ended() const override { return matcher_.IsTerminated(); }
  uint32_t accepted() const override { return accepted_; }

 private:
  static void forbid(TokenId token, std::span<uint32_t> mask) {
    const auto i = static_cast<size_t>(token);
    mask[i / 32] &= ~(uint32_t{1} << (i % 32));
  }

  // JSON may idle in white space for ever, and small models do. Not done where nothing else may
  // come, as within a constant; nor in the prose of a structural tag, nor in a string of one, where
  // nearly everything may come: between the tokens of JSON few do.
  void forbid_blanks(std::span<uint32_t> mask) const {
    std::vector<uint32_t> others(mask.begin(), mask.end());
    for (const auto& [token, bytes] : tokens_->blanks) forbid(token, others);
    uint32_t count = 0;
    for (const uint32_t word : others) count += static_cast<uint32_t>(std::popcount(word));
    const bool is_prose = has_markers_ && count > vocab_size_ / kProseShare;
    if (count > 0 && !is_prose) std::copy(others.begin(), others.end(), mask.begin());
  }

  xgrammar::GrammarMatcher matcher_;
  const std::shared_ptr<const Tokens> tokens_;
  const uint32_t vocab_size_;
  const bool is_json_, has_markers_;
  uint32_t accepted_ = 0;
  uint32_t blank_bytes_ = 0;  // of the tokens accepted last
};

class Compiled final : public CompiledGrammar {
 public:
  Compiled(xgrammar::CompiledGrammar grammar, std::shared_ptr<const Tokens> tokens,
           GrammarKind kind)
      : grammar_(std::move(grammar)), tokens_(std::move(tokens)), kind_(kind) {}

  Result<std::unique_ptr<GrammarMatcher>> start(std::span<const TokenId> output) const override {
    auto matcher = guarded(StatusCode::kInternal, [this] {
      // Nothing is ever taken back, so nothing is kept for it.
      return xgrammar::GrammarMatcher(grammar_, std::nullopt, false, 0);
    });
    if (!matcher.ok()) return matcher.status();
    auto started = std::make_unique<Matcher>(std::move(matcher).value(), tokens_, kind_);
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
  const std::shared_ptr<const Tokens> tokens_;
  const GrammarKind kind_;
};

class Compiler final : public GrammarCompiler {
 public:
  Compiler(const xgrammar::TokenizerInfo& tokenizer, std::shared_ptr<const Tokens> tokens)
      : compiler_(tokenizer, /*max_threads=*/1, /*cache_enabled=*/true,
                  static_cast<int64_t>(grammar_limits::kCacheBytesMax),
                  /*enable_dynamic_compilation=*/true),
        tokens_(std::move(tokens)) {}

  Result<std::shared_ptr<const CompiledGrammar>> compile(const GrammarSpec& spec) override {
    TROUPE_ASSIGN_OR_RETURN(const GrammarText lowered, lower_grammar(spec));
    auto compiled = guarded(StatusCode::kInvalidArgument, [&] {
      return lowered.is_structural_tag ? compiler_.CompileStructuralTag(lowered.text)
                                       : compiler_.CompileGrammar(lowered.text, "root");
    });
    if (!compiled.ok()) return compiled.status();
    return std::shared_ptr<const CompiledGrammar>(
        std::make_shared<Compiled>(std::move(compiled).value(), tokens_, spec.kind));
  }

 private:
  xgrammar::GrammarCompiler compiler_;
  const std::shared_ptr<const Tokens> tokens_;
};

class Vocabulary final : public GrammarVocabulary {
 public:
  Vocabulary(xgrammar::TokenizerInfo tokenizer, std::shared_ptr<const Tokens> tokens)
      : tokenizer_(std::move(tokenizer)), tokens_(std::move(tokens)) {}

  std::unique_ptr<GrammarCompiler> make_compiler() const override {
    return std::make_unique<Compiler>(tokenizer_, tokens_);
  }
  size_t vocab_size() const override { return tokens_->count; }

 private:
  const xgrammar::TokenizerInfo tokenizer_;
  const std::shared_ptr<const Tokens> tokens_;
};

}  // namespace

Result<std::shared_ptr<const GrammarVocabulary>> make_xgrammar_vocabulary(
    const Tokenizer& tokenizer, uint32_t vocab_size) {
  TROUPE_ASSERT(vocab_size > 0);
  if (tokenizer.end_tokens().empty()) {
    return Status{StatusCode::kUnsupported,
                  "structured output needs an end token, and this model's vocabulary has none"};
  }
  std::vector<std::string> texts(vocab_size);
  auto tokens = std::make_shared<Tokens>();
  tokens->count = vocab_size;
  const auto known = static_cast<TokenId>(std::min<size_t>(vocab_size, tokenizer.vocab_size()));
  for (TokenId id = 0; id < known; ++id) {
    // An empty token is never allowed. Unused ones have no meaning to the model.
    const std::string_view bytes = tokenizer.token_bytes(id);
    const bool is_marker =
        std::find(kGrammarMarkers.begin(), kGrammarMarkers.end(), bytes) != kGrammarMarkers.end();
    const bool is_text =
        (!tokenizer.is_hidden(id) || is_marker) && tokenizer.type(id) != TokenType::kUnused;
    if (!is_text) continue;
    texts[static_cast<size_t>(id)] = std::string(bytes);
    if (is_marker && tokenizer.is_hidden(id)) tokens->hidden_markers.push_back(id);
    if (!bytes.empty() && bytes.find_first_not_of(" \n\t\r") == std::string_view::npos)
      tokens->blanks.emplace(id, static_cast<uint32_t>(bytes.size()));
  }
  const std::vector<int32_t> ends(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end());
  TROUPE_ASSIGN_OR_RETURN(auto info, guarded(StatusCode::kInternal, [&] {
                            return xgrammar::TokenizerInfo(texts, xgrammar::VocabType::RAW,
                                                           static_cast<int>(vocab_size), ends);
                          }));
  return std::shared_ptr<const GrammarVocabulary>(
      std::make_shared<Vocabulary>(std::move(info), std::move(tokens)));
}

}  // namespace troupe
