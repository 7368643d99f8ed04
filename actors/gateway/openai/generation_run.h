#pragma once
// One generating request from its prompts to its last token: submits the prompts and assembles the
// choices' texts. Knows no protocol.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/generation.h"
#include "actors/gateway/openai/prepared_request.h"
#include "actors/gateway/openai/usage_totals.h"
#include "actors/gateway/tools/answer_parts.h"
#include "engine/tokenizer/tokenizer.h"

namespace troupe {

// A token of a choice, or of its prompt.
struct ChoiceToken {
  SampledToken sampled;
  // Characters of text before the token's own, counted from the start of the echoed prompt where
  // there is one.
  size_t offset = 0;
  bool scored = true;  // the first token of a prompt has no probability
};

// What is new of one choice. Views, valid during the call.
struct ChoiceDelta {
  uint32_t index = 0;
  bool first = false;                   // nothing of this choice was given before
  std::span<const AnswerPart> parts;    // in order; what may become a stop string or marker waits
  std::span<const ChoiceToken> prompt;  // first only, with echo and log-probabilities
  std::span<const ChoiceToken> tokens;  // also those whose text is held back, cut or hidden
  std::optional<AnswerEnd> finish;      // nothing of this choice comes after it
  std::string_view stop_string;         // with finish: the one that ended it, or empty
};

class GenerationRun;

// Where a run's output goes. Called while the generator's listener is being called, or from
// start(); must not destroy the run from inside a call. After on_end or on_error nothing more
// comes.
class RunSink {
 public:
  virtual ~RunSink() = default;
  // Once and again, until each choice has been finished.
  virtual void on_delta(const ChoiceDelta& delta, const GenerationRun& run) = 0;
  // Everything is generated and has been given.
  virtual void on_end(const UsageTotals& totals) = 0;
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
  GenerationRun(PreparedRequest request, const RunIdentity& identity, Generator& generator,
                RunSink& sink);
  ~GenerationRun();
  GenerationRun(const GenerationRun&) = delete;
  GenerationRun& operator=(const GenerationRun&) = delete;

  // Submits all prompts, or none: on an error nothing is left running and the sink hears nothing.
  // Call once.
  [[nodiscard]] Status start();
  // Ends the run from outside, e.g. at shutdown: cancels, and tells the sink unless it has ended.
  void abort(const Status& status);
  [[nodiscard]] bool ended() const { return ended_; }
  // As of now.
  [[nodiscard]] UsageTotals totals() const;

 private:
  class Choice;
  class Prompt;
  friend class Prompt;

  void give(const ChoiceDelta& delta);
  void cancel_all();
  // Called when a choice has ended: ends the run when it was the last one.
  void finish_if_complete();

  GenerationBody body_;
  std::string response_id_;
  std::string label_;
  std::string model_digest_;
  uint64_t seed_;
  const Tokenizer& tokenizer_;
  Generator& generator_;
  RunSink& sink_;
  std::vector<std::unique_ptr<Prompt>> prompts_;
  bool started_ = false;
  bool ended_ = false;
};

}  // namespace troupe
