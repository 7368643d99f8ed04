#include "sim/swarm.h"

#include <sstream>

#include "engine/kv/window.h"
#include "policies/routing/least_loaded.h"
#include "policies/routing/least_ttft.h"

namespace troupe::sim {
namespace {

// Half of the time nothing, else 1 to `most`.
uint32_t some(SeededRng& rng, uint32_t most) {
  const bool any = rng.chance(0.5);
  const uint64_t count = rng.between(1, most);
  return any ? static_cast<uint32_t>(count) : 0;
}

double share(SeededRng& rng, double most) {
  const bool any = rng.chance(0.5);
  const double value = rng.uniform() * most;
  return any ? value : 0.0;
}

uint32_t number(SeededRng& rng, uint64_t low, uint64_t high) {
  return static_cast<uint32_t>(rng.between(low, high));
}

void draw_shape(SeededRng& rng, WorldOptions& world) {
  world.fronts = rng.chance(0.7) ? 1 : number(rng, 2, 3);
  world.prefill = world.decode = world.mixed = 0;
  switch (rng.below(4)) {
    case 0:
      world.mixed = number(rng, 1, 4);
      break;
    case 1:
      world.mixed = 1;
      [[fallthrough]];
    default:
      world.prefill = number(rng, 1, 3);
      world.decode = number(rng, 1, 3);
  }
}

void draw_worker(SeededRng& rng, SimWorkerOptions& worker) {
  worker.model.layers = number(rng, 1, 4);
  worker.blocks = rng.chance(0.5) ? number(rng, 24, 48) : number(rng, 48, 400);
  worker.copy_tokens_min = number(rng, 1, 16);
  worker.import_tokens_min = rng.chance(0.5) ? 1 : number(rng, 1, 128);
  worker.context_tokens = rng.chance(0.2) ? number(rng, 200, 400) : 2048;
  worker.varies = worker.checks_idle = true;
  worker.cost = {.step_seconds = 1e-3 * (1.0 + 15.0 * rng.uniform()),
                 .token_seconds = 1e-5 * (1.0 + 60.0 * rng.uniform()),
                 .prompt_context_seconds = 1e-7 * rng.uniform(),
                 .decode_context_seconds = 1e-7 * rng.uniform()};
  worker.scheduler.step_tokens_max = rng.chance(0.5) ? number(rng, 8, 64) : number(rng, 64, 512);
  if (rng.chance(0.7)) worker.scheduler.step_time = std::chrono::milliseconds(number(rng, 1, 100));
  worker.scheduler.running_max = rng.chance(0.3) ? number(rng, 1, 4) : 256;
  worker.scheduler.waiting_max = rng.chance(0.2) ? number(rng, 2, 8) : kWaitingSequencesMax;
  worker.scheduler.passes_max = number(rng, 0, 16);
}

// A third of the models have layers with a window. Their pools just do for one sequence, or for
// several.
void draw_window(SeededRng& rng, SimWorkerOptions& worker) {
  if (!rng.chance(0.35)) return;
  SimModel& model = worker.model;
  model.layers = number(rng, 2, 4);
  model.global_every = number(rng, 2, model.layers);
  model.window = number(rng, 2, 120);  // KV of a token comes from that of the one before it
  const uint32_t least = window_blocks_needed(model.window, kDraftTokensMax);
  worker.window_blocks = least + (rng.chance(0.5) ? number(rng, 0, 8) : number(rng, 8, 100));
}

void draw_network(SeededRng& rng, bool faults, WorldOptions& world) {
  world.network.link.latency = std::chrono::microseconds(rng.between(5, 3000));
  world.network.link.jitter_max = std::chrono::microseconds(some(rng, 5000));
  world.network.link.bytes_per_second = 1e5 * static_cast<double>(rng.between(1, 10000));
  world.mail_delay_max = std::chrono::microseconds(some(rng, 500));
  world.clock_offset_max = std::chrono::seconds(some(rng, 3600));
  const double damaged = share(rng, 0.05), doubled = share(rng, 0.3), repeated = share(rng, 0.2);
  if (!faults) return;
  world.network.part_damaged = damaged;
  world.network.part_doubled = doubled;
  world.network.message_doubled = repeated;
}

void draw_faults(SeededRng& rng, FaultOptions& faults) {
  faults.worker_crashes = some(rng, 4);
  faults.front_crashes = rng.chance(0.3) ? some(rng, 2) : 0;
  faults.freezes = some(rng, 4);
  faults.partitions = some(rng, 6);
  faults.slow_links = some(rng, 6);
  faults.device_failures = rng.chance(0.3) ? some(rng, 2) : 0;
  faults.stragglers = some(rng, 3);
  faults.clock_jumps = rng.chance(0.3) ? some(rng, 3) : 0;
  faults.drains = some(rng, 2);
  faults.lasts_max = std::chrono::milliseconds(rng.between(50, 5000));
}

void draw_workload(SeededRng& rng, RandomWorkloadOptions& workload) {
  workload.requests = number(rng, 5, 60);
  workload.window = std::chrono::milliseconds(rng.between(100, 8000));
  workload.bursts = rng.chance(0.3);
  workload.prompt_tokens_max = rng.chance(0.5) ? number(rng, 1, 64) : number(rng, 64, 250);
  workload.output_tokens_max = number(rng, 1, 60);
  workload.shared_prefixes = some(rng, 4);
  workload.choices_max = rng.chance(0.3) ? number(rng, 2, 4) : 1;
  workload.leave = share(rng, 0.5);
  workload.score_prompt = share(rng, 0.3);
  workload.logprobs = share(rng, 1.0);
  workload.salted = share(rng, 0.5);
  workload.named_stops = share(rng, 0.5);
  workload.retries = some(rng, 5);
  workload.pooled = share(rng, 0.3);
}

}  // namespace

Scenario draw_scenario(uint64_t seed, const SwarmOptions& options) {
  SeededRng rng(seed * 7919 + 1);
  Scenario scenario;
  WorldOptions& world = scenario.world;
  world.seed = seed;
  world.plant = options.plant;
  world.check_every_events = number(rng, 20, 400);
  draw_shape(rng, world);
  scenario.policy = rng.chance(0.3) ? "least_loaded" : "least_ttft";
  draw_worker(rng, world.worker);
  world.requests_in_flight_max = rng.chance(0.3) ? number(rng, 2, 12) : 1024;
  draw_network(rng, options.faults, world);
  RandomWorkloadOptions& workload = scenario.workload;
  draw_workload(rng, workload);
  if (options.faults) draw_faults(rng, world.faults);
  workload.seed = seed;
  workload.vocabulary = world.worker.model.vocabulary;
  workload.context_tokens = world.worker.context_tokens;
  SeededRng windows(seed * 7919 + 2);  // of its own, so that old seeds keep the rest
  draw_window(windows, world.worker);
  // All of it one after the other on one worker, three times over.
  world.patience +=
      3 * workload.requests * workload.choices_max *
      world.worker.cost.of_request(workload.prompt_tokens_max, workload.output_tokens_max);
  return scenario;
}

Result<std::unique_ptr<RoutingPolicy>> make_policy(const std::string& name) {
  std::unique_ptr<RoutingPolicy> policy;
  if (name == "least_ttft") policy = std::make_unique<LeastTtft>();
  if (name == "least_loaded") policy = std::make_unique<LeastLoaded>();
  if (!policy) return invalid_argument("no policy is named " + name + ": least_ttft, least_loaded");
  return policy;
}

std::string describe(const Scenario& scenario) {
  const WorldOptions& world = scenario.world;
  const SimWorkerOptions& worker = world.worker;
  const FaultOptions& faults = world.faults;
  const RandomWorkloadOptions& load = scenario.workload;
  const auto us = [](Duration time) {
    return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
  };
  std::ostringstream out;
  out << "policy=" << scenario.policy << " fronts=" << world.fronts << " prefill=" << world.prefill
      << " decode=" << world.decode << " mixed=" << world.mixed << " layers=" << worker.model.layers
      << " window=" << worker.model.window << " global_every=" << worker.model.global_every
      << " window_blocks=" << worker.window_blocks << " blocks=" << worker.blocks
      << " context=" << worker.context_tokens << " step_tokens=" << worker.scheduler.step_tokens_max
      << " step_time_us=" << us(worker.scheduler.step_time)
      << " running=" << worker.scheduler.running_max << " waiting=" << worker.scheduler.waiting_max
      << " passes=" << worker.scheduler.passes_max << " copy_min=" << worker.copy_tokens_min
      << " import_min=" << worker.import_tokens_min << " in_flight=" << world.requests_in_flight_max
      << " step_us=" << worker.cost.step_seconds * 1e6
      << " token_us=" << worker.cost.token_seconds * 1e6
      << " latency_us=" << us(world.network.link.latency)
      << " jitter_us=" << us(world.network.link.jitter_max)
      << " bytes_per_s=" << world.network.link.bytes_per_second
      << " mail_us=" << us(world.mail_delay_max)
      << " clock_offset_us=" << us(world.clock_offset_max)
      << " damaged=" << world.network.part_damaged << " doubled=" << world.network.part_doubled
      << " repeated=" << world.network.message_doubled << " crashes=" << faults.worker_crashes
      << " front_crashes=" << faults.front_crashes << " freezes=" << faults.freezes
      << " partitions=" << faults.partitions << " slow_links=" << faults.slow_links
      << " device_failures=" << faults.device_failures << " stragglers=" << faults.stragglers
      << " clock_jumps=" << faults.clock_jumps << " drains=" << faults.drains
      << " lasts_us=" << us(faults.lasts_max) << " requests=" << load.requests
      << " window_us=" << us(load.window) << " bursts=" << load.bursts
      << " prompt=" << load.prompt_tokens_max << " output=" << load.output_tokens_max
      << " prefixes=" << load.shared_prefixes << " n=" << load.choices_max
      << " leave=" << load.leave << " scores=" << load.score_prompt << " logprobs=" << load.logprobs
      << " salted=" << load.salted << " stops=" << load.named_stops << " retries=" << load.retries
      << " pooled=" << load.pooled;
  return out.str();
}

Outcome run_scenario(const Scenario& scenario, bool twice, const EventLog::Print& print) {
  const RandomWorkload workload(scenario.workload);
  const auto policy = make_policy(scenario.policy);
  Outcome outcome = World(scenario.world, *policy.value(), workload, print).run();
  if (!twice || !outcome.violated_oracle.empty()) return outcome;
  const Outcome again = World(scenario.world, *policy.value(), workload).run();
  if (again.digest != outcome.digest || again.rng_state != outcome.rng_state) {
    outcome.violated_oracle = "unseed";
    outcome.violation = "the same seed ran otherwise: " + std::to_string(outcome.events) +
                        " events, then " + std::to_string(again.events);
  }
  return outcome;
}

std::string explain(const Scenario& scenario, const SwarmOptions& options, const Outcome& outcome) {
  std::ostringstream out;
  out << "seed " << scenario.world.seed << " breaks the rule \"" << outcome.violated_oracle
      << "\": " << outcome.violation << '\n'
      << "drawn: " << describe(scenario) << '\n'
      << "the latest events:\n";
  for (const std::string& line : outcome.latest_events) out << "  " << line << '\n';
  out << "again: troupe sim --swarm --seed " << scenario.world.seed << " --faults "
      << (options.faults ? "swarm" : "none");
  if (options.plant != Plant::kNone) out << " --plant " << to_string(options.plant);
  out << " --log\n";
  return out.str();
}

}  // namespace troupe::sim
