#include "engine/tokenizer/pre_tokenizer.h"

// The code unit width has to be chosen before the header is read.
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

// White space is spelled as the property: PCRE2's \s also has U+180E, which Unicode took out in
// 2013 and which neither llama.cpp nor the models' own tokenizers count.
#define SPACE "\\p{White_Space}"
#define NOT_SPACE "\\P{White_Space}"

// The rules are llama.cpp's (src/llama-vocab.cpp), which took them from the models' tokenizer.json.
constexpr std::string_view kGpt2Pattern = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE
                                          "\\p{L}\\p{N}]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+";

constexpr std::string_view kSingleDigitPattern = "\\p{N}";

#define CONTRACTIONS "(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
#define AFTER_NUMBERS \
  "| ?[^" SPACE "\\p{L}\\p{N}]+[\\r\\n]*|" SPACE "*[\\r\\n]+|" SPACE "+(?!" NOT_SPACE ")|" SPACE "+"
constexpr std::string_view kLlama3Pattern =
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}" AFTER_NUMBERS;
constexpr std::string_view kQwen2Pattern =
    CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" AFTER_NUMBERS;
#undef AFTER_NUMBERS
#undef CONTRACTIONS
#undef NOT_SPACE
#undef SPACE

std::array<PreTokenizerRule, 4> all_rules() {
  return {PreTokenizerRule{.name = "smollm", .patterns = {kSingleDigitPattern, kGpt2Pattern}},
          PreTokenizerRule{.name = "gpt-2", .patterns = {kGpt2Pattern}},
          PreTokenizerRule{.name = "llama-bpe",
                           .patterns = {kLlama3Pattern},
                           .whole_words_first = true,
                           .adds_bos = true},
          PreTokenizerRule{.name = "qwen2", .patterns = {kQwen2Pattern}}};
}

// Backtracks of one match. A run of white space costs one per character, so this is above
// Tokenizer::kMaxTextBytes; an expression that reached it would not be linear.
constexpr uint32_t kMatchLimit = 16U << 20;

template <auto kFree>
struct Pcre2Free {
  void operator()(auto* object) const { kFree(object); }
};
using Code = std::unique_ptr<pcre2_code, Pcre2Free<pcre2_code_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Pcre2Free<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Pcre2Free<pcre2_match_data_free>>;

std::string pcre2_error_text(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

Result<PreTokenizerRule> find_pre_tokenizer_rule(std::string_view name) {
  std::string known;
  for (PreTokenizerRule& rule : all_rules()) {
    if (rule.name == name) return std::move(rule);
    known += (known.empty() ? "" : ", ") + std::string(rule.name);
  }
  return Status(StatusCode::kUnsupported, "the model's pre-tokeniser (tokenizer.ggml.pre) is '" +
                                              std::string(name) + "', but only " + known +
                                              " are known; use a model of one of these families");
}

// One compiled expression. The compiled code and the context are only read while matching, so any
// number of threads share them; what matching writes (MatchData) is each call's own.
class PreTokenizer::Pattern final {
 public:
  Pattern(Code code, MatchContext context) : code_(std::move(code)), context_(std::move(context)) {}

  static Result<std::unique_ptr<Pattern>> compile(std::string_view pattern) {
    int error = 0;
    PCRE2_SIZE error_offset = 0;
    Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                            PCRE2_UTF | PCRE2_UCP, &error, &error_offset, nullptr));
    if (!code)
      return Status(StatusCode::kInternal,
                    "the pre-tokeniser's pattern does not compile at offset " +
                        std::to_string(error_offset) + ": " + pcre2_error_text(error));
    // Where the system forbids making code executable this fails, and matching is only slower.
    static_cast<void>(pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE));
    MatchContext context(pcre2_match_context_create(nullptr));
    TROUPE_ASSERT(context != nullptr);
    pcre2_set_match_limit(context.get(), kMatchLimit);
    return std::make_unique<Pattern>(std::move(code), std::move(context));
  }

  Status split(std::string_view text, std::vector<std::string_view>& words) const {
    const MatchData match(pcre2_match_data_create(1, nullptr));  // one pair: the whole match
    TROUPE_ASSERT(match != nullptr);
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(match.get());
    size_t at = 0;
    while (at < text.size()) {
      const int found =
          pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), at,
                      PCRE2_NO_UTF_CHECK, match.get(), context_.get());
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0)
        return {StatusCode::kInternal,
                "splitting text into words failed: " + pcre2_error_text(found)};
      TROUPE_ASSERT(bounds[0] >= at && bounds[1] > bounds[0] && bounds[1] <= text.size(), at,
                    bounds[0], bounds[1]);
      if (bounds[0] > at) words.push_back(text.substr(at, bounds[0] - at));
      words.push_back(text.substr(bounds[0], bounds[1] - bounds[0]));
      at = bounds[1];
    }
    if (at < text.size()) words.push_back(text.substr(at));
    return ok_status();
  }

 private:
  Code code_;
  MatchContext context_;
};

PreTokenizer::PreTokenizer() = default;
PreTokenizer::~PreTokenizer() = default;

Result<std::unique_ptr<PreTokenizer>> PreTokenizer::create(const PreTokenizerRule& rule) {
  TROUPE_ASSERT(!rule.patterns.empty(), rule.name);
  std::unique_ptr<PreTokenizer> made(new PreTokenizer);
  for (const std::string_view pattern : rule.patterns) {
    TROUPE_ASSIGN_OR_RETURN(auto compiled, Pattern::compile(pattern));
    made->patterns_.push_back(std::move(compiled));
  }
  return made;
}

Status PreTokenizer::split(std::string_view text, std::vector<std::string_view>& words) const {
  std::vector<std::string_view> coarse = {text};
  for (size_t i = 0; i + 1 < patterns_.size(); ++i) {
    std::vector<std::string_view> finer;
    for (const std::string_view word : coarse)
      TROUPE_RETURN_IF_ERROR(patterns_[i]->split(word, finer));
    coarse = std::move(finer);
  }
  for (const std::string_view word : coarse)
    TROUPE_RETURN_IF_ERROR(patterns_.back()->split(word, words));
  return ok_status();
}

}  // namespace troupe
