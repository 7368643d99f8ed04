#pragma once
// Requests that want something of their prompts and no output, such as vectors or scores: many of
// them, a few at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "actors/gateway/generation.h"

namespace troupe {

struct PromptOutcome {
  std::vector<float> embedding;
  std::vector<SampledToken> scores;
  GenerationUsage usage;
};

// Destroying it cancels what still runs.
class PromptBatch final {
 public:
  // Called once, from inside a generator's call or from start(): the outcomes in the order of the
  // requests, or the first failure with the index of its request. Must not destroy the batch.
  using Done = std::function<void(Result<std::vector<PromptOutcome>>, size_t failed)>;

  // Each request has one choice without output. `generator` outlives the batch.
  PromptBatch(std::vector<GenerationRequest> requests, Generator& generator, Done done);
  ~PromptBatch();
  PromptBatch(const PromptBatch&) = delete;
  PromptBatch& operator=(const PromptBatch&) = delete;

  // Submits the first ones. Not ok: nothing is left running and `done` is not called. Call once.
  [[nodiscard]] Status start();
  // Cancels what runs; `done` hears the status unless it has been called.
  void abort(const Status& status);

 private:
  class Entry;

  [[nodiscard]] Status fill();
  void on_ended();
  void fail(size_t index, const Status& status);
  void cancel_all();

  std::vector<GenerationRequest> requests_;
  Generator& generator_;
  Done done_;
  std::vector<PromptOutcome> outcomes_;
  std::vector<std::unique_ptr<Entry>> entries_;  // those submitted, in the order of the requests
  size_t running_ = 0;
  size_t ended_count_ = 0;
  bool over_ = false;
};

}  // namespace troupe
