#include "actors/gateway/anthropic/messages_answer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "actors/gateway/text/escape.h"
#include "base/assert.h"

namespace troupe {
namespace {

std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

// What was cached is counted apart from the other input.
std::string usage_text(const UsageTotals& totals) {
  const uint64_t cached = totals.cached_tokens.value_or(0);
  return "{\"input_tokens\":" + std::to_string(totals.prompt_tokens - cached) +
         ",\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":" +
         std::to_string(cached) + ",\"output_tokens\":" + std::to_string(totals.completion_tokens) +
         "}";
}

std::string_view reason_of(AnswerEnd end, bool by_stop_string) {
  switch (end) {
    case AnswerEnd::kStop:
      return by_stop_string ? "stop_sequence" : "end_turn";
    case AnswerEnd::kLength:
      return "max_tokens";
    case AnswerEnd::kToolCalls:
      return "tool_use";
  }
  TROUPE_ASSERT(false, static_cast<int>(end));
  return {};
}

}  // namespace

MessagesAnswer::MessagesAnswer(const RunIdentity& identity, bool stream, JsonSink& sink)
    : identity_(identity), stream_(stream), sink_(sink) {}

void MessagesAnswer::send(std::string_view type, const std::string& members) {
  if (!stream_) return;
  sink_.on_named_event(type, "{\"type\":\"" + std::string(type) + "\"" + members + "}");
}

std::string MessagesAnswer::stop_members() const {
  return "\"stop_reason\":" + (stop_reason_.empty() ? "null" : json_text(stop_reason_)) +
         ",\"stop_sequence\":" + (stop_sequence_.empty() ? "null" : json_text(stop_sequence_));
}

std::string MessagesAnswer::object(std::string_view content, std::string_view usage) const {
  std::string out = "{\"id\":" + json_text(identity_.response_id);
  out += R"(,"type":"message","role":"assistant","model":)" + json_text(identity_.model);
  out += ",\"content\":[";
  out += content;
  out += "]," + stop_members() + ",\"usage\":";
  out += usage;
  return out + '}';
}

// With the first token, so that a request which fails before it has a status code of its own. How
// much of the prompt was cached is known at the end.
void MessagesAnswer::begin(const UsageTotals& totals) {
  if (std::exchange(begun_, true) || !stream_) return;
  UsageTotals known;
  known.prompt_tokens = totals.prompt_tokens;
  send("message_start", ",\"message\":" + object({}, usage_text(known)));
}

void MessagesAnswer::on_delta(const ChoiceDelta& delta, const GenerationRun& run) {
  TROUPE_ASSERT(delta.index == 0, delta.index);
  begin(run.totals());
  for (const AnswerPart& part : delta.parts) take(part);
  if (!delta.finish) return;
  if (block_ != Block::kNone) close();
  stop_sequence_ = delta.stop_string;
  stop_reason_ = reason_of(*delta.finish, !stop_sequence_.empty());
}

void MessagesAnswer::take(const AnswerPart& part) {
  switch (part.kind) {
    case AnswerPartKind::kText:
      if (block_ != Block::kText) open(Block::kText, R"({"type":"text","text":"")");
      return grow(Block::kText, part.text);
    case AnswerPartKind::kReasoning:
      if (block_ != Block::kThinking) {
        open(Block::kThinking, R"({"type":"thinking","thinking":"","signature":"")");
      }
      return grow(Block::kThinking, part.text);
    case AnswerPartKind::kCallStarted:
      return open(Block::kToolUse, "{\"type\":\"tool_use\",\"id\":" + json_text(part.id) +
                                       ",\"name\":" + json_text(part.text) + ",\"input\":{}");
    case AnswerPartKind::kCallArguments:
      return grow(Block::kToolUse, part.text);
    case AnswerPartKind::kCallFinished:
      return close();
  }
}

void MessagesAnswer::open(Block kind, const std::string& start) {
  if (block_ != Block::kNone) close();
  block_ = kind;
  start_ = start;
  send("content_block_start",
       ",\"index\":" + std::to_string(index_) + ",\"content_block\":" + start + "}");
}

void MessagesAnswer::grow(Block kind, std::string_view piece) {
  TROUPE_ASSERT(block_ == kind, static_cast<int>(block_));
  text_ += piece;
  if (!stream_) return;
  const char* delta = kind == Block::kText       ? R"({"type":"text_delta","text":)"
                      : kind == Block::kThinking ? R"({"type":"thinking_delta","thinking":)"
                                                 : R"({"type":"input_json_delta","partial_json":)";
  send("content_block_delta",
       ",\"index\":" + std::to_string(index_) + ",\"delta\":" + delta + json_text(piece) + "}");
}

void MessagesAnswer::close() {
  TROUPE_ASSERT(block_ != Block::kNone, index_);
  send("content_block_stop", ",\"index\":" + std::to_string(index_++));
  if (!content_.empty()) content_ += ',';
  const std::string text = std::exchange(text_, {});
  if (block_ == Block::kText) {
    content_ += "{\"type\":\"text\",\"text\":" + json_text(text) + "}";
  } else if (block_ == Block::kThinking) {
    content_ += "{\"type\":\"thinking\",\"thinking\":" + json_text(text) + ",\"signature\":\"\"}";
  } else {
    // Cut short by max_tokens, the arguments are no JSON: then the input is shown as empty, as
    // there is no way to show part of an object.
    const bool is_whole = nlohmann::json::accept(text);
    content_ += start_.substr(0, start_.size() - 2) + (is_whole ? text : "{}") + "}";
  }
  block_ = Block::kNone;
}

void MessagesAnswer::on_end(const UsageTotals& totals) {
  TROUPE_ASSERT(begun_ && block_ == Block::kNone && !stop_reason_.empty(), index_);
  if (!stream_) return sink_.on_end(object(content_, usage_text(totals)));
  send("message_delta", ",\"delta\":{" + stop_members() + "},\"usage\":" + usage_text(totals));
  send("message_stop", "");
  sink_.on_end({});
}

std::string format_count(uint64_t tokens) {
  return "{\"input_tokens\":" + std::to_string(tokens) + "}";
}

}  // namespace troupe
