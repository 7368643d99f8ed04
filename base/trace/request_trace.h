#pragma once
// Recorded requests of real services, from the files in which they are published.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

#include "base/clock.h"
#include "troupe/status.h"

namespace troupe {

struct TraceRequest {
  Duration arrival{0};  // since the first one
  uint32_t input_tokens = 1, output_tokens = 1;
  // Of the prompt's blocks of Trace::hash_tokens tokens, the last maybe partial: equal ones mean an
  // equal prompt up to that block. Empty: nothing is known of its content.
  std::vector<uint64_t> hashes;
};

struct Trace {
  uint32_t hash_tokens = 512;
  std::vector<TraceRequest> requests;             // in the order of their arrival
  [[nodiscard]] uint32_t context_tokens() const;  // of the longest request
};

// Requests of one trace; more are an error.
inline constexpr size_t kTraceRequestsMax = 5'000'000;
inline constexpr uint32_t kTraceTokensMax = 4'000'000;  // of one request, prompt or output
inline constexpr size_t kTraceLineBytesMax = size_t{1} << 20;
inline constexpr double kTraceSecondsMax = 366.0 * 86400.0;  // from the first to the last arrival

// Reads, by what stands in its first line:
// - Mooncake's JSON lines: timestamp in ms, input_length, output_length, hash_ids of 512 tokens.
// - Qwen-Bailian's JSON lines: the same with chat_id, timestamp in s, hash_ids of 16 tokens.
// - Azure's CSV: TIMESTAMP (date and time), ContextTokens, GeneratedTokens.
// - BurstGPT's CSV: Timestamp in s, Model, Request tokens, Response tokens, …
// kInvalidArgument: none of these, or a line breaks its format; the message names it.
[[nodiscard]] Result<Trace> read_trace(std::istream& in, const std::string& name);

}  // namespace troupe
