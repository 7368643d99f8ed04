#pragma once
// From records to figures, as `vllm bench serve` defines them; docs/bench.md has the formulas.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "loadgen/record.h"
#include "troupe/status.h"

namespace troupe::loadgen {

// In the unit of the values; all 0 when there are none.
struct Summary {
  size_t count = 0;
  double mean = 0.0, std = 0.0;  // std of the values themselves (divided by count)
  double least = 0.0, p50 = 0.0, p90 = 0.0, p95 = 0.0, p99 = 0.0, most = 0.0;
};

// Between the two nearest of the sorted values, linearly; `percent` from 0 to 100.
[[nodiscard]] double percentile(const std::vector<double>& sorted, double percent);
[[nodiscard]] Summary summarize(std::vector<double> values);

// What a request has to keep to count as good, in milliseconds; none: anything.
struct Slos {
  std::optional<double> ttft_ms, tpot_ms, e2el_ms;
  [[nodiscard]] bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};
// Of texts such as "ttft:500". kInvalidArgument names the flag, the rule and the fix.
[[nodiscard]] Result<Slos> parse_slos(const std::vector<std::string>& texts);

struct ErrorCount {
  size_t count = 0;
  std::string sample;  // the words of the first one
};

struct Measures {
  size_t completed = 0, failed = 0, cancelled = 0;
  size_t retries = 0;
  double seconds = 0.0;  // of the whole run
  uint64_t input_tokens = 0, output_tokens = 0;
  double requests_per_s = 0.0, input_tokens_per_s = 0.0, output_tokens_per_s = 0.0;
  double total_tokens_per_s = 0.0;
  double goodput_per_s = 0.0;  // requests that keep every SLO; 0 without SLOs
  size_t good = 0;
  double peak_output_tokens_per_s = 0.0;  // chunks in the fullest second
  size_t peak_concurrency = 0;
  // Milliseconds. `first_text` differs from `ttft` where a server begins with a chunk without text.
  Summary ttft, tpot, itl, e2el, first_text;
  Summary client_queue;                      // from when a request was due to when it was sent
  Summary input_lengths, output_lengths;     // tokens
  std::map<std::string, ErrorCount> errors;  // by kind
  size_t counted_by_usage = 0, counted_by_tokenize = 0, counted_by_chunks = 0;
  // Answers whose length is not the one asked for: the server refused or lacks ignore_eos.
  size_t other_output_length = 0;
};

// (latency - TTFT) / (output tokens - 1) in milliseconds; nothing for fewer than two tokens.
[[nodiscard]] std::optional<double> tpot_ms_of(const RequestRecord& record);
[[nodiscard]] bool keeps(const RequestRecord& record, const Slos& slos);

// `run` is the time from the first request that was due to the end of the last.
[[nodiscard]] Measures measure(const std::deque<RequestRecord>& records, Duration run,
                               const Slos& slos);

[[nodiscard]] inline double to_ms(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}
[[nodiscard]] inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace troupe::loadgen
