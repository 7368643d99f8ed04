#include "engine/model/row_sampler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "engine/grammar/limits.h"

namespace troupe {

void RowSampler::use(const StepSlice& slice, const Row& row, std::span<const float> logits,
                     SliceResult& out) {
  if (!out.status.ok()) return;
  if (row.score >= 0) {
    const int32_t top = std::max(0, slice.params->prompt_logprobs);
    auto scored = sampler_.score(logits, row.score, static_cast<uint32_t>(top));
    if (scored.ok())
      out.prompt_scores.push_back(std::move(scored).value());
    else
      out.status = scored.status();
  }
  if (row.sample && out.status.ok() && samples_after(slice, row.index, out.sampled))
    sample(slice, logits, out);
}

void RowSampler::sample(const StepSlice& slice, std::span<const float> logits, SliceResult& out) {
  if (out.grammar_ended) return;
  const auto right = static_cast<uint32_t>(out.sampled.size());  // guesses
  std::span<const TokenId> history = slice.history;
  if (right > 0 && !history.empty()) {
    history_.assign(history.begin(), history.end());
    for (const SampledToken& guess : out.sampled) history_.push_back(guess.token);
    history = history_;
  }
  const TimePoint start = clock_.now();
  const Status masked = slice.grammar != nullptr ? fill_mask(slice, right) : ok_status();
  const TimePoint filled = clock_.now();
  auto sampled = masked.ok() ? sampler_.sample(logits, *slice.params,
                                               {.position = slice.position + slice.tokens.size() -
                                                            slice.guesses + right,
                                                .history = history,
                                                .prompt_tokens = slice.prompt_tokens,
                                                .output_tokens = slice.output_tokens + right,
                                                .allowed = allowed_of(slice)})
                             : Result<SampledToken>(masked);
  if (!sampled.ok()) {
    // After a right guess the tokens so far are good; the next step fails, in its own name.
    if (right == 0) out.status = sampled.status();
    return;
  }
  if (slice.grammar != nullptr)
    out.status = follow(*slice.grammar, sampled->token, filled - start, out);
  if (out.status.ok()) out.sampled.push_back(std::move(sampled).value());
}

std::span<const uint32_t> RowSampler::allowed_of(const StepSlice& slice) const {
  if (slice.grammar == nullptr) return {};
  return mask_;
}

// What the grammar allows after the output so far and `right` guesses, into mask_.
Status RowSampler::fill_mask(const StepSlice& slice, uint32_t right) {
  GrammarMatcher& grammar = *slice.grammar;
  TROUPE_ASSERT(grammar.accepted() == slice.output_tokens + right && !grammar.ended(),
                slice.sequence, grammar.accepted(), slice.output_tokens, right);
  mask_.resize(mask_words(vocab_));
  TROUPE_RETURN_IF_ERROR(grammar.fill_mask(mask_));
  const bool is_empty =
      std::all_of(mask_.begin(), mask_.end(), [](uint32_t word) { return word == 0; });
  if (!is_empty) return ok_status();
  return {StatusCode::kUnsupported,
          "the model's vocabulary has no token for what the grammar wants after " +
              std::to_string(slice.output_tokens) + " tokens"};
}

// Moves the grammar on. Both its parts count: one that takes so long would hold up every sequence
// of the step again and again.
Status RowSampler::follow(GrammarMatcher& grammar, TokenId token, Duration filling,
                          SliceResult& out) const {
  const TimePoint start = clock_.now();
  TROUPE_RETURN_IF_ERROR(grammar.accept(token));
  out.grammar_ended = grammar.ended();
  if (filling + (clock_.now() - start) <= grammar_limits::kTokenPatience) return ok_status();
  return {StatusCode::kResourceExhausted,
          "the grammar took too long for one token: it can be read in too many ways at once; "
          "simplify it, above all repetitions within repetitions"};
}

}  // namespace troupe
