#pragma once
// What became of one request.

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"

namespace troupe::loadgen {

enum class Ending : uint8_t {
  kOpen,       // still under way
  kOk,         // a whole answer
  kFailed,     // `error` says how
  kCancelled,  // given up by whoever ran the load
};

// Where the number of output tokens comes from.
enum class TokenSource : uint8_t {
  kUsage,     // the server's own count
  kTokenize,  // the server's /tokenize of the answer's text
  kChunks,    // chunks with text: right only where each has one token
};

// Value. Times since the run's beginning, except those of chunks, which count from `start`.
struct RequestRecord {
  uint64_t index = 0, conversation = 0;
  uint32_t turn = 0;
  Duration scheduled{0};         // when it should have been sent
  Duration start{0};             // when it was: the first byte may be written
  std::vector<Duration> chunks;  // each chunk with choices, since `start`; never decreasing
  Duration first_text{-1};       // the first of them with text, since `start`; -1: none
  Duration end{0};               // when it had ended in any way
  uint32_t prompt_tokens = 0, output_tokens = 0;
  uint32_t prompt_tokens_aimed = 0, output_tokens_aimed = 0;  // 0: nothing was aimed at
  TokenSource token_source = TokenSource::kChunks;
  Ending ending = Ending::kOpen;
  uint32_t http_status = 0;  // 0: no answer
  uint32_t tries = 1;
  uint32_t text_chunks = 0;
  std::string error;   // of failed ones: its kind, e.g. "http 429", "timeout"
  std::string detail;  // in more words

  // Of ended ones with ending kOk.
  [[nodiscard]] Duration ttft() const { return chunks.front(); }
  [[nodiscard]] Duration latency() const { return chunks.back(); }
};

}  // namespace troupe::loadgen
