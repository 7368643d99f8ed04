#include "tests/support/grammar_walk.h"

#include <algorithm>

#include "base/assert.h"
#include "base/philox.h"
#include "engine/model/gguf_file.h"
#include "engine/tokenizer/gguf_tokenizer.h"

namespace troupe {
namespace {

bool leads_to_an_end(std::string_view bytes) {
  return bytes == "\"" || bytes == "}" || bytes == "]" || bytes == "\"}" || bytes == ")";
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  auto file = GgufFile::open(path);
  TROUPE_ASSERT(file.ok(), path, file.status().message());
  auto spec = tokenizer_spec_of(*file.value());
  TROUPE_ASSERT(spec.ok(), spec.status().message());
  auto tokenizer = Tokenizer::create(spec.value());
  TROUPE_ASSERT(tokenizer.ok(), tokenizer.status().message());
  return std::move(tokenizer).value();
}

GrammarWalk walk(GrammarMatcher& matcher, const Tokenizer& tokenizer, const WalkOptions& options) {
  GrammarWalk result;
  std::vector<uint32_t> mask(mask_words(tokenizer.vocab_size()));
  std::vector<TokenId> allowed;
  std::vector<TokenId> preferred;
  for (uint32_t step = 0; step < options.tokens_max; ++step) {
    result.status = matcher.fill_mask(mask);
    if (!result.status.ok()) return result;
    allowed.clear();
    preferred.clear();
    bool may_end = false;
    for (TokenId token = 0; tokenizer.has_token(token); ++token) {
      const auto i = static_cast<size_t>(token);
      if ((mask[i / 32] >> (i % 32) & 1U) == 0) continue;
      if (std::binary_search(tokenizer.end_tokens().begin(), tokenizer.end_tokens().end(), token)) {
        may_end = true;
        continue;
      }
      allowed.push_back(token);
      if (leads_to_an_end(tokenizer.token_bytes(token))) preferred.push_back(token);
    }
    const uint64_t draw = philox_u64(options.seed, step, 7);
    const bool hurries = step >= options.hurry_after;
    if (may_end && (allowed.empty() || hurries || draw % 4 == 0)) {
      result.status = matcher.accept(tokenizer.end_tokens().front());
      result.ended = true;
      return result;
    }
    if (allowed.empty()) {
      result.status = {StatusCode::kInternal, "the mask allows nothing after: " + result.text};
      return result;
    }
    const bool prefers = !preferred.empty() && (hurries || draw % 3 == 0);
    const std::vector<TokenId>& from = prefers ? preferred : allowed;
    const TokenId token = from[(draw >> 8U) % from.size()];
    result.status = matcher.accept(token);
    if (!result.status.ok()) return result;
    result.tokens.push_back(token);
    result.text += tokenizer.token_bytes(token);
  }
  return result;
}

}  // namespace troupe
