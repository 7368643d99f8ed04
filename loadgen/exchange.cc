#include "loadgen/exchange.h"

#include <algorithm>

#include "base/assert.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

constexpr size_t kRefusalBytesMax = 16384;

}  // namespace

void Exchange::on_head(uint32_t status, std::optional<double> retry_after_s) {
  record_.http_status = status;
  retry_after_s_ = retry_after_s;
}

bool Exchange::on_bytes(std::string_view bytes) {
  if (record_.ending != Ending::kOpen) return false;
  if (record_.http_status != kOk) {
    refusal_ += bytes.substr(0, kRefusalBytesMax - refusal_.size());
    return refusal_.size() < kRefusalBytesMax;
  }
  std::vector<std::string> events;
  const Status status = parser_.push(bytes, events);
  for (const std::string& event : events) {
    if (!take(event)) return false;
  }
  if (!status.ok()) fail("malformed event", status.message());
  return status.ok();
}

bool Exchange::take(const std::string& event) {
  const auto chunk = parse_chunk(event);
  if (!chunk.ok()) {
    fail("malformed event", chunk.status().message());
    return false;
  }
  if (chunk->error) {
    fail("error event", *chunk->error);
    return false;
  }
  if (chunk->is_done) is_done_ = true;
  if (chunk->usage) usage_ = chunk->usage;
  if (chunk->has_choices) note_chunk(chunk.value());
  return record_.ending == Ending::kOpen;
}

void Exchange::note_chunk(const Chunk& chunk) {
  if (record_.chunks.size() == kChunksMax) {
    fail("endless answer", "more than " + std::to_string(kChunksMax) + " chunks");
    return;
  }
  // Of events that came together each has its own reading of the clock, a moment later.
  const Duration since_start = clock_.now() - began_ - record_.start;
  TROUPE_ASSERT(record_.chunks.empty() || since_start >= record_.chunks.back());
  record_.chunks.push_back(since_start);
  if (chunk.is_finished) is_finished_ = true;
  if (chunk.text.empty()) return;
  ++record_.text_chunks;
  if (record_.first_text < Duration(0)) record_.first_text = since_start;
  if (text_.size() < kAnswerTextBytesMax) text_ += chunk.text;
}

void Exchange::on_end(const std::optional<std::string>& network_error) {
  if (record_.ending != Ending::kOpen) return;
  if (record_.http_status == 0) {
    fail(network_error && network_error->find("refused") != std::string::npos ? "connection refused"
                                                                              : "no answer",
         network_error.value_or("the connection was closed"));
  } else if (record_.http_status != kOk) {
    fail("http " + std::to_string(record_.http_status), error_message_of(refusal_));
  } else if (record_.chunks.empty()) {
    fail("no chunk", network_error.value_or("the answer ended without any chunk with choices"));
  } else if (network_error) {
    fail("cut", *network_error);
  } else if (!is_done_ && !is_finished_) {
    fail("cut", "the stream ended without finish_reason and without [DONE]");
  } else {
    record_.ending = Ending::kOk;
    record_.end = clock_.now() - began_;
    if (usage_) {
      record_.token_source = TokenSource::kUsage;
      record_.prompt_tokens = usage_->prompt_tokens;
      record_.output_tokens = usage_->completion_tokens;
    } else {
      record_.prompt_tokens = record_.prompt_tokens_aimed;
      record_.output_tokens = record_.text_chunks;
    }
  }
}

void Exchange::on_timeout(Duration limit) {
  if (record_.ending != Ending::kOpen) return;
  const auto seconds = std::chrono::duration<double>(limit).count();
  fail("timeout", "not complete within " + std::to_string(seconds) + " s");
}

void Exchange::fail(std::string kind, std::string detail) {
  record_.ending = Ending::kFailed;
  record_.end = clock_.now() - began_;
  record_.error = std::move(kind);
  record_.detail = detail.substr(0, kErrorSampleBytesMax);
}

}  // namespace troupe::loadgen
