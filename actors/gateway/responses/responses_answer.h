#pragma once
// What a run generates as a response object, or as the events of one.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/openai/logprobs_format.h"
#include "actors/gateway/responses/output_items.h"
#include "actors/gateway/responses/responses_request.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

class ResponsesAnswer final : public RunSink {
 public:
  // `request` may be without its body. All references outlive this object. `clock` says when the
  // response was completed.
  ResponsesAnswer(ResponsesRequest request, const RunIdentity& identity, bool stream,
                  bool wants_logprobs, const Tokenizer& tokenizer, const Clock& clock,
                  ResponseStore& store, JsonSink& sink);

  void on_delta(const ChoiceDelta& delta, const GenerationRun& run) override;
  void on_end(const UsageTotals& totals) override;
  // A stream that has begun ends with response.failed; else the sink hears of the error.
  void on_error(const Status& status) override;

 private:
  void begin();
  void take(const AnswerPart& part, std::string_view logprobs);
  void open(OutputKind kind);
  void append(std::string_view text, std::string_view logprobs);
  void close(bool complete);
  void finish(AnswerEnd end);
  // `members` are what follows the type and the sequence number, each after a comma.
  void send(std::string_view type, const std::string& members);
  // ,"item_id":…,"output_index":…,"content_index":0 of the open item
  [[nodiscard]] std::string place() const;
  [[nodiscard]] std::string new_logprobs(const ChoiceDelta& delta) const;
  [[nodiscard]] std::string object(std::string_view status, std::string_view error,
                                   std::string_view usage) const;
  void keep(const std::string& body);

  ResponsesRequest request_;
  const RunIdentity identity_;
  const bool stream_;
  const bool wants_logprobs_;
  const Tokenizer& tokenizer_;
  const Clock& clock_;
  ResponseStore& store_;
  JsonSink& sink_;
  const std::string id_tail_;  // the response's id without its prefix
  uint64_t sequence_ = 0;      // of the next event
  bool begun_ = false;
  bool is_open_ = false;  // the last item still grows
  bool incomplete_ = false;
  std::vector<OutputItem> items_;
  std::string done_;  // the finished items, joined by commas
};

}  // namespace troupe
