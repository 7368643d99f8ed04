#pragma once
// One request and its streamed answer: from the bytes to its record. Knows no network.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "loadgen/chunk.h"
#include "loadgen/http_peer.h"
#include "loadgen/record.h"
#include "loadgen/sse.h"

namespace troupe::loadgen {

// Takes what the server sends and notes when. One try; a repeated request gets a new one.
class Exchange final : public AnswerSink {
 public:
  // `began` is the run's beginning; `record.start` is set already. Both references outlive this.
  Exchange(const Clock& clock, TimePoint began, RequestRecord& record)
      : clock_(clock), began_(began), record_(record) {}

  void on_head(uint32_t status, std::optional<double> retry_after_s) override;
  [[nodiscard]] bool on_bytes(std::string_view bytes) override;

  // The answer has ended: orderly, or by an error of the network with its words. Decides how the
  // request ended.
  void on_end(const std::optional<std::string>& network_error);
  // It was not there in time.
  void on_timeout(Duration limit);

  [[nodiscard]] bool is_refused_for_now() const { return record_.http_status == 429; }
  [[nodiscard]] std::optional<double> retry_after_s() const { return retry_after_s_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  static constexpr uint32_t kOk = 200;

  [[nodiscard]] bool take(const std::string& event);
  void note_chunk(const Chunk& chunk);
  void fail(std::string kind, std::string detail);

  const Clock& clock_;
  const TimePoint began_;
  RequestRecord& record_;
  SseParser parser_;
  std::optional<double> retry_after_s_;
  std::string refusal_;  // the body of an answer other than 200, its beginning
  std::string text_;
  std::optional<Usage> usage_;
  bool is_done_ = false, is_finished_ = false;
};

}  // namespace troupe::loadgen
