#pragma once
// `troupe sim`: a cluster in virtual time.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>

#include "engine/schedule/limits.h"

namespace troupe {

struct SimOptions {
  uint64_t seed = 1;
  uint32_t seeds = 1;  // of a swarm: so many, one after the other
  bool swarm = false;  // everything is drawn from the seed
  uint32_t workers = 8;
  uint32_t prefill = 0, decode = 0, mixed = 0;  // instead of `workers`, when any is given
  uint32_t fronts = 1;
  std::string policy = "least_ttft";
  std::string device = "gpu";
  uint32_t blocks = 0;                               // of each worker; 0: the device's
  uint32_t step_tokens_max = 0;                      // 0: the device's
  uint32_t step_time_ms = kStepTimeDefault.count();  // 0: no matter
  uint32_t running_max = 256;
  uint32_t requests_in_flight_max = 100000;
  uint32_t requests = 1000;
  double rate = 0.0;  // requests per second; 0: what suits the device
  uint32_t prompt_tokens_max = 400, output_tokens_max = 200;
  std::string trace;
  double speed = 1.0;
  std::string faults = "none";
  std::string plant = "none";
  double slo_ttft_ms = 10000.0, slo_tpot_ms = 100.0;
  bool log = false, json = false;
};

// Adds the command, which sets `run`. Both references outlive the parsing.
void add_sim(CLI::App& app, SimOptions& options, std::function<int()>& run);

}  // namespace troupe
