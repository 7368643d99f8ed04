#pragma once
// What a run came to, in the words of `vllm bench serve`.

#include <string>
#include <vector>

#include "sim/world.h"

namespace troupe::sim {

struct Percentiles {
  double mean = 0.0, p50 = 0.0, p90 = 0.0, p99 = 0.0, most = 0.0;
};
// Zeros when there is no value. Reorders the values.
[[nodiscard]] Percentiles percentiles_of(std::vector<float>& values);

struct Report {
  Percentiles ttft, tpot, itl, e2e;  // seconds
  uint64_t requests = 0, completed = 0, failed = 0, refused = 0, left = 0;
  double virtual_seconds = 0.0;
  double requests_per_second = 0.0, output_tokens_per_second = 0.0;
  double goodput = 0.0;         // completed requests within the SLO, per second
  double cache_hit_rate = 0.0;  // of the prompt tokens that completed requests had
  double moved_bytes = 0.0;     // of KV, at the modelled model's size
  uint64_t moved_parts = 0;
  // Of prompts computed elsewhere: what their last bytes took after their computation, on average,
  // and in relation to the mean TTFT.
  double exposed_seconds = 0.0, exposed_share = 0.0;
  double imports_whole = 0.0, imports_cut = 0.0;
  uint64_t events = 0;
  uint64_t digest = 0;
  std::vector<Outcome::WorkerUse> workers;
};

// `part_bytes_factor` as in SimNetworkOptions. Takes the outcome's measurements apart.
[[nodiscard]] Report report_of(Outcome& outcome, double part_bytes_factor);

[[nodiscard]] std::string to_text(const Report& report);
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace troupe::sim
