#include "apps/troupe/sim.h"

#include <glog/logging.h>

#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <vector>

#include "apps/troupe/options.h"
#include "sim/report.h"
#include "sim/swarm.h"
#include "sim/trace.h"

namespace troupe {
namespace {

using sim::Outcome;

// A kind of device, and what its worker has.
struct DeviceProfile {
  sim::CostModel cost;
  uint32_t blocks = 0, step_tokens_max = 0;
  double kv_bytes_per_token = 0.0;
  SimLink link;
  double rate = 0.0;  // requests per second and worker that leave it room
};

// As gpu_cost() says; 56 GB of KV beside the weights; 200 Gbit/s between nodes.
DeviceProfile gpu_profile() {
  return {sim::gpu_cost(), 26000, 2048, 131072, {std::chrono::microseconds(10), {}, 25e9}, 8.0};
}

// SmolLM2-135M: 30 layers, 3 heads of 64, K and V, 16 bits; 1 GB of KV; 10 Gbit/s between nodes.
DeviceProfile cpu_profile() {
  return {sim::cpu_cost(), 2700, 512, 23040, {std::chrono::microseconds(50), {}, 1.25e9}, 0.5};
}

void print_line(const std::string& line) {
  std::cout << line << '\n';
}

sim::WorldOptions world_options(const SimOptions& options, const DeviceProfile& profile) {
  sim::WorldOptions world;
  world.seed = options.seed;
  world.fronts = options.fronts;
  world.prefill = options.prefill;
  world.decode = options.decode;
  const bool by_role = options.prefill + options.decode + options.mixed > 0;
  world.mixed = by_role ? options.mixed : options.workers;
  world.worker.cost = profile.cost;
  world.worker.blocks = options.blocks > 0 ? options.blocks : profile.blocks;
  world.worker.scheduler.step_tokens_max =
      options.step_tokens_max > 0 ? options.step_tokens_max : profile.step_tokens_max;
  world.worker.scheduler.step_time = std::chrono::milliseconds(options.step_time_ms);
  world.worker.scheduler.running_max = options.running_max;
  world.worker.scheduler.waiting_max = 1U << 20;
  // Parts leave four times a step, and a token's KV is one number in each of the four.
  world.worker.model = {
      .layers = 4, .vocabulary = 32000, .end_token = 0, .reads = sim::Reads::kLast};
  world.requests_in_flight_max = options.requests_in_flight_max;
  world.network.link = profile.link;
  world.network.part_bytes_factor =
      profile.kv_bytes_per_token / (world.worker.model.layers * sizeof(uint64_t));
  world.patience = std::chrono::hours(24);
  world.slo = {options.slo_ttft_ms / 1e3, options.slo_tpot_ms / 1e3};
  if (options.faults == "swarm") {
    world.faults = sim::draw_scenario(options.seed, {.faults = true}).world.faults;
  }
  return world;
}

Result<Trace> load_trace(const std::string& path) {
  std::ifstream in(path);
  if (!in) return Status(StatusCode::kNotFound, "the trace " + path + " cannot be opened");
  return read_trace(in, path);
}

// Not ok: no run was possible. Otherwise the outcome, and what the network's parts stand for.
Result<Outcome> run_cluster(const SimOptions& options, double& part_bytes_factor) {
  const DeviceProfile profile = options.device == "gpu" ? gpu_profile() : cpu_profile();
  sim::WorldOptions world = world_options(options, profile);
  part_bytes_factor = world.network.part_bytes_factor;
  TROUPE_ASSIGN_OR_RETURN(const auto policy, sim::make_policy(options.policy));
  Trace trace;
  std::unique_ptr<sim::Workload> workload;
  if (options.trace.empty()) {
    sim::RandomWorkloadOptions random;
    random.seed = options.seed;
    random.requests = options.requests;
    const double workers = std::max(1U, world.mixed + world.decode);
    const double rate = options.rate > 0 ? options.rate : profile.rate * workers;
    random.window = std::chrono::duration_cast<Duration>(
        std::chrono::duration<double>(options.requests / rate));
    random.vocabulary = world.worker.model.vocabulary;
    random.prompt_tokens_max = options.prompt_tokens_max;
    random.output_tokens_max = options.output_tokens_max;
    workload = std::make_unique<sim::RandomWorkload>(random);
    world.worker.context_tokens = options.prompt_tokens_max + options.output_tokens_max + 1;
  } else {
    TROUPE_ASSIGN_OR_RETURN(trace, load_trace(options.trace));
    sim::TraceWorkloadOptions how;
    how.speed = options.speed;
    how.vocabulary = world.worker.model.vocabulary;
    how.fronts = options.fronts;
    workload = std::make_unique<sim::TraceWorkload>(trace, how);
    world.worker.context_tokens = trace.context_tokens();
  }
  sim::EventLog::Print print;
  if (options.log) print = print_line;
  return sim::World(world, *policy, *workload, print).run();
}

sim::Plant plant_named(const std::string& name) {
  for (uint8_t i = 0; i < sim::kPlants; ++i) {
    if (sim::to_string(static_cast<sim::Plant>(i)) == name) return static_cast<sim::Plant>(i);
  }
  return sim::Plant::kNone;
}

// Whether all seeds keep the rules; says which does not.
int run_swarm(const SimOptions& options) {
  const sim::SwarmOptions how{options.faults == "swarm", plant_named(options.plant)};
  uint64_t broken = 0, events = 0, requests = 0;
  for (uint64_t seed = options.seed; seed < options.seed + options.seeds; ++seed) {
    const sim::Scenario scenario = sim::draw_scenario(seed, how);
    sim::EventLog::Print print;
    if (options.log) print = print_line;
    const Outcome outcome = sim::run_scenario(scenario, true, print);
    events += outcome.events;
    requests += outcome.measured.requests;
    if (outcome.violated_oracle.empty()) continue;
    ++broken;
    std::cout << sim::explain(scenario, how, outcome) << '\n';
  }
  std::cout << options.seeds << " seeds, " << broken << " broken, " << requests << " requests, "
            << events << " events\n";
  return broken == 0 ? 0 : 1;
}

int run_sim(const SimOptions& options) {
  // The cores' own lines would come from all nodes at once.
  FLAGS_minloglevel = google::GLOG_ERROR;
  if (options.swarm) return run_swarm(options);
  const auto started = std::chrono::steady_clock::now();
  double part_bytes_factor = 1.0;
  Result<Outcome> ran = run_cluster(options, part_bytes_factor);
  if (!ran.ok()) return fail(ran.status());
  Outcome& outcome = ran.value();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
  if (!outcome.violated_oracle.empty()) {
    std::cout << "the rule \"" << outcome.violated_oracle << "\" is broken: " << outcome.violation
              << "\nthe latest events:\n";
    for (const std::string& line : outcome.latest_events) std::cout << "  " << line << '\n';
    return 1;
  }
  const sim::Report report = sim::report_of(outcome, part_bytes_factor);
  if (options.json) {
    std::cout << sim::to_json(report) << '\n';
  } else {
    std::cout << sim::to_text(report) << "\n"
              << report.events << " events in " << took.count() << " s\n";
  }
  return 0;
}

void add_cluster_flags(CLI::App& command, SimOptions& options) {
  command.add_option("--workers", options.workers, "Workers that compute prompts and decode")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--prefill", options.prefill, "Instead of --workers: those for prompts …")
      ->check(CLI::Range(0, 4096));
  command.add_option("--decode", options.decode, "… those that decode …")
      ->check(CLI::Range(0, 4096));
  command.add_option("--mixed", options.mixed, "… and those that do both")
      ->check(CLI::Range(0, 4096));
  command.add_option("--fronts", options.fronts, "Routers, each with a gateway")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  command.add_option("--policy", options.policy, "Of the routers: least_ttft or least_loaded")
      ->check(CLI::IsMember({"least_ttft", "least_loaded"}))
      ->capture_default_str();
  command
      .add_option("--device", options.device,
                  "What a step costs: gpu (a model of 8 billion parameters on a large "
                  "accelerator), or cpu (SmolLM2-135M on two cores)")
      ->check(CLI::IsMember({"gpu", "cpu"}))
      ->capture_default_str();
  command.add_option("--kv-blocks", options.blocks,
                     "KV blocks of 16 tokens of each worker; 0: the device's");
  command.add_option("--max-step-tokens", options.step_tokens_max,
                     "Tokens computed in one step; 0: the device's");
  command
      .add_option("--step-time-ms", options.step_time_ms,
                  "Milliseconds that a step should take, by its prompts' chunks; 0: no matter")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  command.add_option("--max-running", options.running_max, "Sequences in a worker's batch at once")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--max-requests", options.requests_in_flight_max,
                  "Requests in flight per router; further ones are refused")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
}

void add_workload_flags(CLI::App& command, SimOptions& options) {
  command.add_option("--requests", options.requests, "Requests, when there is no trace")
      ->check(CLI::Range(1, 10000000))
      ->capture_default_str();
  command.add_option("--rate", options.rate, "Of these, per second; 0: what suits the device");
  command.add_option("--prompt-tokens", options.prompt_tokens_max, "Of these, at most (from 1 on)")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command.add_option("--output-tokens", options.output_tokens_max, "Of these, at most (from 1 on)")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command
      .add_option("--trace", options.trace,
                  "Requests from a file: Mooncake or Qwen-Bailian JSON lines, Azure or BurstGPT "
                  "CSV")
      ->check(CLI::ExistingFile);
  command.add_option("--speed", options.speed, "The trace's requests come so many times as fast")
      ->check(CLI::Range(1e-6, 1e6))
      ->capture_default_str();
  command.add_option("--slo-ttft", options.slo_ttft_ms, "Bound for goodput, ms")
      ->capture_default_str();
  command.add_option("--slo-tpot", options.slo_tpot_ms, "Bound for goodput, ms")
      ->capture_default_str();
}

}  // namespace

void add_sim(CLI::App& app, SimOptions& options, std::function<int()>& run) {
  CLI::App* command =
      app.add_subcommand("sim",
                         "Run a cluster in virtual time: the real routers, gateways and "
                         "workers on modelled devices and networks");
  command->add_option("--seed", options.seed, "The same seed gives the same run")
      ->capture_default_str();
  add_cluster_flags(*command, options);
  add_workload_flags(*command, options);
  command
      ->add_option("--faults", options.faults,
                   "none, or swarm: crashes, pauses, partitions and more, drawn from the seed")
      ->check(CLI::IsMember({"none", "swarm"}))
      ->capture_default_str();
  command->add_flag("--swarm", options.swarm,
                    "Draw everything from the seed, small and mean, and check every rule");
  command->add_option("--seeds", options.seeds, "With --swarm: so many seeds, from --seed on")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  std::vector<std::string> plants;
  for (uint8_t i = 0; i < sim::kPlants; ++i)
    plants.emplace_back(sim::to_string(static_cast<sim::Plant>(i)));
  command
      ->add_option("--plant", options.plant, "With --swarm: plant a bug, to see that it is caught")
      ->check(CLI::IsMember(plants));
  command->add_flag("--log", options.log, "Print every event");
  command->add_flag("--json", options.json, "Print one JSON object");
  command->callback([&] { run = [&] { return run_sim(options); }; });
}

}  // namespace troupe
