#pragma once
// `troupe bench`: load for any OpenAI-compatible server.

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/settings.h"

namespace troupe {

struct BenchOptions {
  std::string url = "http://127.0.0.1:8000";
  std::string model;  // empty: the server's first
  std::string api_key;
  std::string endpoint = "chat";
  // How requests come.
  uint32_t concurrency = 0;  // of a closed loop; 0: 8, where nothing else says how they come
  double rate = 0.0;         // of an open loop, per second; 0: closed, or a trace
  std::string arrival = "poisson";
  double burstiness = 1.0;
  uint32_t max_concurrency = 0;
  std::string trace;
  double time_scale = 1.0;
  // How many.
  uint64_t requests = 0;
  double duration_s = 0.0;
  uint32_t warmup = 0;
  // What is asked.
  std::string prompts;  // a file
  std::string prompt_tokens = "128";
  std::string output_tokens;  // empty: what a file of prompts says, else 128
  uint32_t prefix_tokens = 0, prefix_groups = 1, turns = 1;
  double think_time_s = 0.0;
  bool ignore_eos = true;
  double temperature = 0.0;
  std::string max_tokens_field = "max_completion_tokens";
  std::string extra_body;
  uint64_t seed = 0;
  double timeout_s = 600.0;
  bool retry_429 = false;
  // What is told.
  std::vector<std::string> slo;
  std::string json, records, svg;
};

void add_bench_settings(Settings& settings, BenchOptions& options);
int run_bench(const BenchOptions& options);

}  // namespace troupe
