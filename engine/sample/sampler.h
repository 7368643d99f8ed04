#pragma once
// Chooses the next token from a row of logits. The choice is a function of the arguments alone:
// same logits, parameters, seed and position give the same token on every machine (own exp and log,
// every sum in a fixed order, Philox keyed by seed and position).
//
// Order of the steps (vLLM's):
//   1. log-probabilities of the raw logits, where asked for: the model's own, whatever comes after
//   2. a grammar's mask, allowed_tokens, bad_words: what they do not allow is impossible; then
//      logit_bias: added
//   3. repetition penalty r over tokens of prompt and output: x / r where x > 0, else x · r;
//      frequency penalty f, presence penalty p over output tokens: x − f · count − p
//   4. min_tokens: end and stop tokens are impossible before that many output tokens. Under a mask
//      end tokens are also impossible with ignore_eos, and either rule holds only as long as the
//      mask allows something else: an answer that is complete ends.
//   5. temperature: below 1e-5 the most probable token is taken (ties: the lower id); else x / T
//   6. top_k: the k most probable (ties: lower ids first)
//   7. top_p: of what is left, the fewest most probable whose share is at least top_p
//   8. min_p: of what is left, those of at least min_p times the most probable one's probability
//   9. the draw, among what is left

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "engine/sample/ranking.h"
#include "engine/sample/sampling_params.h"
#include "troupe/status.h"

namespace troupe {

// Lowest log-probability that is ever reported: JSON has no infinity, and OpenAI uses this value.
inline constexpr float kLogprobMin = -9999.0F;
// Temperatures below this are greedy.
inline constexpr float kGreedyTemperature = 1e-5F;

// Where in its sequence the sampled token will stand.
struct SampleContext {
  uint64_t position = 0;             // its index in the sequence, prompt included
  std::span<const TokenId> history;  // prompt and output so far; read only where needs_history()
  uint32_t prompt_tokens = 0;        // how many of `history` are prompt
  uint32_t output_tokens = 0;        // sampled so far
  // Of a grammar: bit t % 32 of word t / 32 says whether token t is allowed. Empty: all are.
  std::span<const uint32_t> allowed;
};

// The seed of the choice-th of a request's n continuations: does not depend on n.
[[nodiscard]] uint64_t choice_seed(uint64_t request_seed, uint32_t choice);

// Holds scratch memory: one per thread. Nothing of one call influences the next.
class Sampler final {
 public:
  // `end_tokens`: those that end a sequence by the model's own rule (Tokenizer::end_tokens()).
  Sampler(uint32_t vocab_size, std::vector<TokenId> end_tokens);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // `logits`: vocab_size values; −∞ = impossible. Allocates only for log-probabilities. The
  // parameters are valid (validate()). kInternal: a NaN or +∞ among the logits, or no possible
  // token is left, or history or parameters name a token outside the vocabulary; the message says
  // which. kInvalidArgument: allowed_tokens or bad_words have left no possible token.
  [[nodiscard]] Result<SampledToken> sample(std::span<const float> logits,
                                            const SamplingParams& params,
                                            const SampleContext& context);

  // The log-probability of a known token (of a prompt) and of the `top` most probable ones.
  [[nodiscard]] Result<SampledToken> score(std::span<const float> logits, TokenId token,
                                           uint32_t top);

 private:
  struct Peak {  // the highest logit and the first token that has it
    float logit = 0.0F;
    TokenId token = 0;
  };
  // The steps, in their order.
  [[nodiscard]] static Result<Peak> find_peak(std::span<const float> logits);
  void add_logprobs(std::span<const float> logits, const Peak& peak, uint32_t top,
                    SampledToken& out);
  [[nodiscard]] bool changes_logits(const SamplingParams& params,
                                    const SampleContext& context) const;
  [[nodiscard]] Status adjust(std::span<const float> logits, const SamplingParams& params,
                              const SampleContext& context);
  void apply_mask(std::span<const uint32_t> allowed);
  [[nodiscard]] Status keep_allowed(const SamplingParams& params);
  [[nodiscard]] Status rule_out_bad_words(const SamplingParams& params,
                                          const SampleContext& context);
  [[nodiscard]] Status rule_out_ends(const SamplingParams& params, const SampleContext& context);
  [[nodiscard]] Status apply_penalties(const SamplingParams& params, const SampleContext& context);
  void keep_top_k(std::span<const float> logits, uint32_t top_k);
  void keep_top_p(std::span<const float> logits, float top_p);
  void keep_min_p(float min_p);
  [[nodiscard]] TokenId draw(uint64_t seed, uint64_t position) const;
  // kInternal when a token is outside the vocabulary.
  [[nodiscard]] Status check_tokens(std::span<const TokenId> tokens, std::string_view what) const;

  const uint32_t vocab_size_;
  const std::vector<TokenId> end_tokens_;
  std::vector<float> adjusted_;   // the logits after steps 2 to 4
  std::vector<float> kept_;       // of the allowed tokens, while all others become impossible
  std::vector<uint32_t> counts_;  // per token, how often in the output; all 0 between calls
  std::vector<uint8_t> seen_;     // per token, whether in prompt or output; all 0 between calls
  Ranking ranking_;
  std::vector<Rank> ranks_;
  std::vector<double> weights_;  // per token, e^((logit − highest) / T), or 0: filtered out
  std::vector<double> masses_;   // per bucket of the ranking, the sum of its weights
};

}  // namespace troupe
