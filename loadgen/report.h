#pragma once
// What a run is told as: a table for people, JSON for programs, a picture.

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "loadgen/client_health.h"
#include "loadgen/measures.h"
#include "loadgen/record.h"

namespace troupe::loadgen {

struct Report {
  std::string title;                   // "MODEL at URL, chat, 4 at once"
  nlohmann::ordered_json config;       // every option as it was used, without keys
  nlohmann::ordered_json environment;  // of the client and the server
  Slos slos;
  Measures measures;
  ClientHealth client;
  bool was_interrupted = false;
};

// What a reader has to know before he believes the figures, each in one sentence.
[[nodiscard]] std::vector<std::string> warnings_of(const Report& report);

[[nodiscard]] std::string table_of(const Report& report);

// The figures under the names of vLLM's result files (mean_ttft_ms, request_throughput, …), then
// what those lack.
[[nodiscard]] nlohmann::ordered_json json_of(const Report& report);

// One line of JSON for each request.
[[nodiscard]] std::string json_lines_of(const std::deque<RequestRecord>& records);

// Latency over time: TTFT and E2E of each request at its start, their p99, failures, and below it
// the output tokens of each second. A whole SVG document that can be read on light and dark ground.
[[nodiscard]] std::string svg_of(const Report& report, const std::deque<RequestRecord>& records);

}  // namespace troupe::loadgen
