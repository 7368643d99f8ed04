#pragma once
// One generating HTTP request from its prompts to its last byte: submits the prompts, assembles the
// choices' texts, and makes the events or the body of the answer. Knows no HTTP.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/generation.h"
#include "actors/gateway/openai/logprobs_format.h"
#include "actors/gateway/openai/prepared_request.h"
#include "actors/gateway/openai/response_format.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// Where a run's output goes. Called while the generator's listener is being called, or from
// start(); must not destroy the run from inside a call. After on_end or on_error nothing more
// comes.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // The payload of one server-sent event; only for a streamed request.
  virtual void on_event(std::string_view json) = 0;
  // Everything is generated. `body` is the whole answer, or empty for a streamed request, whose
  // events have all been given.
  virtual void on_end(std::string body) = 0;
  virtual void on_error(const Status& status) = 0;
};

struct RunIdentity {
  std::string response_id;  // "chatcmpl-..." or "cmpl-..."
  std::string label;        // for logs
  std::string model;
  int64_t created_unix_s = 0;
  uint64_t seed_default = 0;  // where the request names none
};

// The choice of prompt p and number c has the index p * n + c. Destroying the run cancels what
// still runs of it, in whatever state that is.
class GenerationRun final {
 public:
  // All references outlive the run.
  GenerationRun(PreparedRequest request, RunIdentity identity, const Tokenizer& tokenizer,
                Generator& generator, RunSink& sink);
  ~GenerationRun();
  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;

  // Submits all prompts, or none: on an error nothing is left running and the sink hears nothing.
  // Call once.
  [[nodiscard]] Status start();
  // Ends the run from outside, e.g. at shutdown: cancels, and tells the sink unless it has ended.
  void abort(const Status& status);
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  class Choice;
  class Prompt;
  friend class Prompt;

  void emit(std::string event);
  // The value of the usage field of an event that is not the last, or empty.
  [[nodiscard]] std::string event_usage() const;
  void cancel_all();
  // Called when a choice has ended: ends the run when it was the last one.
  void finish_if_complete();
  [[nodiscard]] UsageTotals totals() const;

  GenerationBody body_;
  RunIdentity identity_;
  const Tokenizer& tokenizer_;
  Generator& generator_;
  RunSink& sink_;
  ResponseFormat format_;
  std::vector<std::unique_ptr<Prompt>> prompts_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace troupe
