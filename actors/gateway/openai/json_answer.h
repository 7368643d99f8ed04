#pragma once
// What a run generates as the JSON of the OpenAI-compatible API: the events of a stream, or the
// body of a whole answer.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/openai/logprobs_format.h"
#include "actors/gateway/openai/response_format.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

class JsonAnswer final : public RunSink {
 public:
  // `tokenizer` and `sink` outlive this object.
  JsonAnswer(const GenerationBody& body, const RunIdentity& identity, const Tokenizer& tokenizer,
             JsonSink& sink);

  void on_delta(const ChoiceDelta& delta, const GenerationRun& run) override;
  void on_end(const UsageTotals& totals) override;
  void on_error(const Status& status) override;

 private:
  // What gathers of one choice of an answer that is not streamed.
  struct Part {
    struct Call {
      std::string id, name, arguments;
    };
    std::string text, reasoning;
    std::vector<Call> calls;
    LogprobsFormat logprobs;
    std::optional<AnswerEnd> finish;
  };

  void gather(const ChoiceDelta& delta);
  void stream(const ChoiceDelta& delta, const std::string& usage);
  [[nodiscard]] std::string format_choice(uint32_t index, Part& part) const;
  void append_logprobs(const ChoiceDelta& delta, LogprobsFormat& out) const;
  // The value of the usage field of an event that is not the last, or empty.
  [[nodiscard]] std::string event_usage(const GenerationRun& run) const;

  const Api api_;
  const bool stream_;
  const bool wants_logprobs_;
  const bool include_usage_;
  const bool continuous_usage_;
  const Tokenizer& tokenizer_;
  JsonSink& sink_;
  ResponseFormat format_;
  std::vector<Part> parts_;  // by index
};

}  // namespace troupe
