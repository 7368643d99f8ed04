#pragma once
// What a run generates as a message of Anthropic's API, or as the events of one.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/running_answer.h"

namespace troupe {

class MessagesAnswer final : public RunSink {
 public:
  // `sink` outlives this object.
  MessagesAnswer(const RunIdentity& identity, bool stream, JsonSink& sink);

  void on_delta(const ChoiceDelta& delta, const GenerationRun& run) override;
  void on_end(const UsageTotals& totals) override;
  void on_error(const Status& status) override { sink_.on_error(status); }

 private:
  enum class Block { kNone, kText, kThinking, kToolUse };

  void begin(const UsageTotals& totals);
  void take(const AnswerPart& part);
  // `start` is the block as it is before its first piece.
  void open(Block kind, const std::string& start);
  void grow(Block kind, std::string_view piece);
  void close();
  void send(std::string_view type, const std::string& members);
  // What stands before the content, and {"id",…,"content":…,"stop_reason":…,…}.
  [[nodiscard]] std::string object(std::string_view content, std::string_view usage) const;
  [[nodiscard]] std::string stop_members() const;

  const RunIdentity identity_;
  const bool stream_;
  JsonSink& sink_;
  bool begun_ = false;
  Block block_ = Block::kNone;  // the one that still grows
  size_t index_ = 0;            // of that one
  std::string text_;            // of that one
  std::string start_;           // of that one: a call's members before its input
  std::string content_;         // the finished ones, joined by commas
  std::string stop_reason_;     // empty: it has not ended
  std::string stop_sequence_;   // the stop string that ended it, or empty
};

// The answer of /v1/messages/count_tokens.
[[nodiscard]] std::string format_count(uint64_t tokens);

}  // namespace troupe
