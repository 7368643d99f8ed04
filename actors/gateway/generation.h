#pragma once
// What the gateway's front ends (HTTP, RPC, command line) ask of the serving path behind them.
// Everything here runs on the gateway's one event-loop thread.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "engine/finish_reason.h"
#include "engine/sample/sampling_params.h"
#include "troupe/status.h"

namespace troupe {

// One prompt and its n continuations. An HTTP request with a batch of prompts becomes several.
struct GenerationRequest {
  std::string label;            // the client's name for it (X-Request-Id) or ours; for logs only
  std::vector<TokenId> prompt;  // never empty; already checked against the context length
  std::vector<SamplingParams> choices;  // one per continuation; their seeds already differ
  std::string cache_salt;               // requests share cached prefixes only within one salt
  std::string model = {};  // digest of the model that shall answer; empty: the only one
};

// Counted by the worker, so that they agree with what was computed.
struct GenerationUsage {
  uint32_t prompt_tokens = 0;
  uint32_t cached_tokens = 0;  // of the prompt, found in the prefix cache
};

// Receives one request's progress, in order, until its end. Each choice ends exactly once, by
// on_finished; or the whole request ends exactly once, by on_failed. After that nothing comes.
class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // Scores of prompt tokens 1, 2, … (the first one has none); may come in several runs; comes
  // before the first token of any choice. Only where choices[0].prompt_logprobs ≥ 0.
  virtual void on_prompt_scores(std::span<const SampledToken> scores) = 0;
  // Never empty; includes a sampled end token or stop token id (the front end hides its text).
  virtual void on_tokens(uint32_t choice, std::span<const SampledToken> tokens) = 0;
  // The vector of a pooled prompt, before that choice's end; not normalised. Only where the
  // choice's `pooling` asks for it.
  virtual void on_embedding(uint32_t /*choice*/, std::span<const float> /*values*/) {}
  // `stop_token` is the end or stop token that ended it, or -1.
  virtual void on_finished(uint32_t choice, FinishReason reason, TokenId stop_token,
                           const GenerationUsage& usage) = 0;
  virtual void on_failed(const Status& status) = 0;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // Starts a request. The listener lives until the request has ended or cancel() has returned. It
  // is never called from inside submit(). kResourceExhausted: the queue is full, retry later (HTTP
  // 429).
  [[nodiscard]] virtual Result<RequestId> submit(GenerationRequest request,
                                                 GenerationListener& listener) = 0;
  // Ends what still runs of the request; its blocks are free within one step; the listener hears
  // nothing more. Harmless for a request that has ended.
  virtual void cancel(RequestId request) = 0;
  // The same for one choice, e.g. after a stop string; the others go on. When every choice has
  // ended or been cancelled, so has the request. Returns what was counted for the request's prompt;
  // zeros when the choice had ended before.
  virtual GenerationUsage cancel_choice(RequestId request, uint32_t choice) = 0;
};

}  // namespace troupe
