#pragma once
// A scenario drawn from a seed: the cluster's shape and limits, the network, the requests, and what
// goes wrong. Most seeds leave out most kinds of faults, so that each is also seen alone.

#include <cstdint>
#include <memory>
#include <string>

#include "sim/workload.h"
#include "sim/world.h"

namespace troupe::sim {

struct Scenario {
  WorldOptions world;
  std::string policy = "least_ttft";  // a name for make_policy()
  RandomWorkloadOptions workload;
};

struct SwarmOptions {
  bool faults = true;
  Plant plant = Plant::kNone;
};

[[nodiscard]] Scenario draw_scenario(uint64_t seed, const SwarmOptions& options);

// "least_ttft" or "least_loaded". kInvalidArgument: another name.
[[nodiscard]] Result<std::unique_ptr<RoutingPolicy>> make_policy(const std::string& name);

// Everything that was drawn, in one line.
[[nodiscard]] std::string describe(const Scenario& scenario);

// Runs it, and with `twice` once more: another digest or end state of the random numbers breaks the
// rule "unseed".
[[nodiscard]] Outcome run_scenario(const Scenario& scenario, bool twice = false,
                                   const EventLog::Print& print = nullptr);

// For people, after a run that broke a rule: seed, what was drawn, the rule, the latest events, and
// the command that repeats it.
[[nodiscard]] std::string explain(const Scenario& scenario, const SwarmOptions& options,
                                  const Outcome& outcome);

}  // namespace troupe::sim
