#pragma once
// POST /v1/score: from the tokens to the answer.

#include <string>
#include <vector>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/openai/prompt_batch.h"
#include "actors/gateway/openai/score_request.h"
#include "actors/gateway/openai/served_model.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

// {"id","object":"list","created","model","data":[…],"usage"} with one {"object":"score","index",
// "logprob","token_count","is_greedy","tokens","token_ids","token_logprobs"} for each continuation.
// `logprob` is the sum of `token_logprobs`, added in double precision in their order; `is_greedy`:
// each token is the most probable one at its place.
class ScoreAnswer final : public RunningAnswer {
 public:
  // All references outlive the answer.
  ScoreAnswer(const ScoreBody& body, ScoreTokens tokens, RunIdentity identity,
              const ServedModel& model, Generator& generator, JsonSink& sink);

  [[nodiscard]] Status start() override { return batch_.start(); }
  void abort(const Status& status) override { batch_.abort(status); }

 private:
  [[nodiscard]] std::vector<GenerationRequest> make_requests(const std::string& cache_salt,
                                                             const std::string& digest) const;
  void finish(const std::vector<PromptOutcome>& outcomes);
  [[nodiscard]] std::string entry(size_t index, const std::vector<SampledToken>& scores) const;

  const ScoreTokens tokens_;
  const RunIdentity identity_;
  const Tokenizer& tokenizer_;
  JsonSink& sink_;
  PromptBatch batch_;  // last: its end may still call the sink
};

}  // namespace troupe
