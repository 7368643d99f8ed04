#include "apps/troupe/profile.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/node/engine_options.h"
#include "apps/node/isa_choice.h"
#include "apps/troupe/options.h"
#include "base/os/memory.h"
#include "base/os/system_clock.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/backend/profiling_backend.h"
#include "engine/model/executor.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint32_t kSequencesMax = 1024;
constexpr uint32_t kStepTokensMax = 65536;
constexpr uint32_t kContextMax = 1 << 20;

// What was measured of one phase.
struct Measured {
  std::string phase;
  uint32_t tokens = 0;  // of a step
  uint32_t steps = 0;
  Duration time{};  // of all steps, outside operations too
  std::vector<OperationProfile> operations;
};

double milliseconds(Duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

// Everything that a phase needs, and nothing of a server: a model on a backend that measures.
class Profiler {
 public:
  explicit Profiler(const ProfileOptions& options) : options_(options) {}

  Status load();
  // Runs the phase's step once to warm up, then as often as asked.
  Result<Measured> measure(const std::string& name, const ProfilePhase& phase);

  [[nodiscard]] std::string_view description() const { return cpu_->description(); }
  [[nodiscard]] uint32_t threads() const { return threads_; }
  [[nodiscard]] std::string_view kv_type() const { return to_string(kv_type_); }

 private:
  [[nodiscard]] Status check_memory(const std::string& name, const ProfilePhase& phase) const;
  [[nodiscard]] StepPlan plan_of(const ProfilePhase& phase) const;

  const ProfileOptions& options_;
  const SystemClock clock_;
  uint32_t threads_ = 0;
  KvType kv_type_ = KvType::kF16;
  std::unique_ptr<GgufFile> file_;
  std::optional<ModelDescription> description_;
  std::unique_ptr<CpuBackend> cpu_;
  std::unique_ptr<ProfilingBackend> backend_;
  std::unique_ptr<DecoderModel> model_;
};

Status Profiler::load() {
  TROUPE_ASSIGN_OR_RETURN(const CpuIsa isa, choose_isa(options_.cpu_features, clock_));
  TROUPE_ASSIGN_OR_RETURN(kv_type_, kv_type_of(options_.kv_cache_dtype, "cpu"));
  threads_ = choose_threads(options_.threads);
  TROUPE_ASSIGN_OR_RETURN(file_, GgufFile::open(options_.model_path));
  TROUPE_ASSIGN_OR_RETURN(description_, read_model(*file_));
  cpu_ = std::make_unique<CpuBackend>(CpuBackendOptions{threads_, isa, &clock_});
  backend_ =
      std::make_unique<ProfilingBackend>(*cpu_, clock_, [this] { return cpu_->busy_time(); });
  TROUPE_ASSIGN_OR_RETURN(model_, DecoderModel::load(*file_, *description_, *backend_, nullptr));
  return ok_status();
}

uint32_t blocks_of(const ProfilePhase& phase) {
  return (phase.context + phase.tokens + kBlockTokens - 1) / kBlockTokens;
}

StepPlan Profiler::plan_of(const ProfilePhase& phase) const {
  const uint32_t blocks = blocks_of(phase);
  SamplingParams greedy;
  greedy.temperature = 0.0F;
  const auto params = std::make_shared<const SamplingParams>(greedy);
  StepPlan plan;
  for (uint32_t s = 0; s < phase.sequences; ++s) {
    StepSlice slice{.sequence = SequenceId(s + 1), .position = phase.context, .sample = true};
    for (uint32_t t = 0; t < phase.tokens; ++t)
      slice.tokens.push_back(static_cast<TokenId>((s * 131 + t * 17) % description_->config.vocab));
    for (uint32_t b = 0; b < blocks; ++b) slice.blocks.emplace_back(s * blocks + b);
    slice.prompt_tokens = phase.context + phase.tokens;
    slice.params = params;
    plan.slices.push_back(std::move(slice));
  }
  return plan;
}

// Memory that is promised and then not there would end the process midway.
Status Profiler::check_memory(const std::string& name, const ProfilePhase& phase) const {
  const ModelConfig& config = description_->config;
  const uint64_t kv =
      uint64_t{phase.sequences} * blocks_of(phase) * Executor::block_bytes(config, kv_type_);
  const uint64_t needed =
      kv + Executor::workspace_bytes(config, {.step_tokens_max = phase.sequences * phase.tokens});
  TROUPE_ASSIGN_OR_RETURN(const uint64_t available, available_memory_bytes());
  if (needed <= available) return ok_status();
  return {StatusCode::kResourceExhausted,
          "phase " + name + " needs " + std::to_string(needed >> 20U) + " MiB, but only " +
              std::to_string(available >> 20U) +
              " MiB of memory are available; take fewer sequences or a shorter context"};
}

Result<Measured> Profiler::measure(const std::string& name, const ProfilePhase& phase) {
  const uint32_t tokens = phase.sequences * phase.tokens;
  if (phase.context + phase.tokens > description_->config.context_length)
    return invalid_argument(
        "phase " + name + " needs a context of " + std::to_string(phase.context + phase.tokens) +
        " tokens, the model has " + std::to_string(description_->config.context_length));
  TROUPE_RETURN_IF_ERROR(check_memory(name, phase));
  TROUPE_ASSIGN_OR_RETURN(const auto executor,
                          Executor::make(*backend_, *model_, {}, clock_,
                                         {.step_tokens_max = tokens,
                                          .kv_blocks = phase.sequences * blocks_of(phase),
                                          .kv_type = kv_type_}));
  StepPlan plan = plan_of(phase);
  TROUPE_RETURN_IF_ERROR(executor->execute(plan).status());
  backend_->reset();
  Measured measured{.phase = name, .tokens = tokens, .steps = options_.steps};
  for (uint32_t step = 0; step < options_.steps; ++step) {
    plan.number = step + 1;
    TROUPE_ASSIGN_OR_RETURN(const StepResult result, executor->execute(plan));
    measured.time += result.finished - result.started;
  }
  measured.operations = backend_->operations();
  return measured;
}

// One line of the table, of `calls`, `time`, ... in all steps.
void print_row(const Measured& of, uint32_t threads, const OperationProfile& row) {
  const double seconds = std::chrono::duration<double>(row.time).count();
  const auto per_second = [&](double amount) {
    char text[32] = "-";
    if (amount > 0 && seconds > 0) std::snprintf(text, sizeof text, "%.1f", amount / seconds / 1e9);
    return std::string(text);
  };
  const double idle = 1.0 - row.busy / std::chrono::duration<double, std::nano>(row.time) / threads;
  std::printf("  %-44s %6.0f %9.3f %6.1f%% %8s %8s %6.0f%%\n", row.name.c_str(),
              static_cast<double>(row.calls) / of.steps, milliseconds(row.time) / of.steps,
              100.0 * row.time / std::chrono::duration<double, std::nano>(of.time),
              per_second(row.bytes).c_str(), per_second(row.operations).c_str(), 100.0 * idle);
}

void print(const Measured& of, uint32_t threads) {
  const double step_ms = milliseconds(of.time) / of.steps;
  std::printf("\n%s: %.3f ms a step, %.1f tokens/s\n", of.phase.c_str(), step_ms,
              of.tokens / step_ms * 1e3);
  std::printf("  %-44s %6s %9s %7s %8s %8s %7s\n", "operation", "calls", "ms", "share", "GB/s",
              "GOP/s", "idle");
  OperationProfile rest{.name = "between operations", .time = of.time};
  OperationProfile all{.name = "all", .time = of.time};
  for (const OperationProfile& operation : of.operations) {
    print_row(of, threads, operation);
    rest.time -= operation.time;
    all.busy += operation.busy;
    all.bytes += operation.bytes;
    all.operations += operation.operations;
    all.calls += operation.calls;
  }
  rest.busy = rest.time;  // the calling thread alone
  all.busy += rest.busy;
  print_row(of, threads, rest);
  print_row(of, threads, all);
}

Json json_of(const Measured& of) {
  Json operations = Json::array();
  for (const OperationProfile& operation : of.operations)
    operations.push_back({{"name", operation.name},
                          {"calls", operation.calls},
                          {"seconds", std::chrono::duration<double>(operation.time).count()},
                          {"busy_seconds", std::chrono::duration<double>(operation.busy).count()},
                          {"bytes", operation.bytes},
                          {"operations", operation.operations}});
  return {{"phase", of.phase},
          {"tokens", of.tokens},
          {"steps", of.steps},
          {"seconds", std::chrono::duration<double>(of.time).count()},
          {"operations", std::move(operations)}};
}

Status profile(const ProfileOptions& options) {
  std::vector<ProfilePhase> phases;
  for (const std::string& text : options.phases) {
    TROUPE_ASSIGN_OR_RETURN(phases.emplace_back(), parse_profile_phase(text));
  }
  Profiler profiler(options);
  TROUPE_RETURN_IF_ERROR(profiler.load());
  Json report = Json::array();
  if (!options.json)
    std::cout << profiler.description() << ", KV in " << profiler.kv_type() << std::endl;
  for (size_t i = 0; i < phases.size(); ++i) {
    TROUPE_ASSIGN_OR_RETURN(const Measured measured,
                            profiler.measure(options.phases[i], phases[i]));
    if (options.json)
      report.push_back(json_of(measured));
    else
      print(measured, profiler.threads());
  }
  if (options.json)
    std::cout << Json{{"backend", profiler.description()},
                      {"threads", profiler.threads()},
                      {"kv_cache_dtype", profiler.kv_type()},
                      {"phases", std::move(report)}}
                     .dump(2)
              << std::endl;
  return ok_status();
}

}  // namespace

Result<ProfilePhase> parse_profile_phase(const std::string& text) {
  const auto fail = [&](const std::string& why) {
    return invalid_argument("phase \"" + text + "\" " + why +
                            "; write SEQUENCESxTOKENS@CONTEXT, e.g. 8x1@128");
  };
  uint32_t numbers[3] = {};
  const char separators[3] = {'x', '@', '\0'};
  const char* at = text.c_str();
  const char* const end = at + text.size();
  for (size_t i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, numbers[i]);
    if (error != std::errc() || *next != separators[i]) return fail("cannot be read");
    at = next + 1;
  }
  const ProfilePhase phase{numbers[0], numbers[1], numbers[2]};
  if (phase.sequences == 0 || phase.tokens == 0) return fail("computes nothing");
  if (phase.sequences > kSequencesMax || phase.context > kContextMax ||
      uint64_t{phase.sequences} * phase.tokens > kStepTokensMax)
    return fail("is larger than " + std::to_string(kSequencesMax) + " sequences, " +
                std::to_string(kStepTokensMax) + " tokens in a step or a context of " +
                std::to_string(kContextMax));
  return phase;
}

void add_profile(CLI::App& app, ProfileOptions& options, std::function<int()>& run) {
  options.phases = {"1x1@128", "1x1@2047", "8x1@128", "32x1@128", "64x1@128", "1x512@0"};
  CLI::App* command = app.add_subcommand(
      "profile", "Show where the time of a forward pass goes, operation by operation");
  command->add_option("model", options.model_path, "The model: a GGUF file")->required();
  command->add_option("--threads", options.threads, "Threads that compute; 0: one per core")
      ->check(CLI::Range(0, 1024));
  command
      ->add_option("--cpu-features", options.cpu_features,
                   "Instruction set; all give the same tokens")
      ->envname("TROUPE_CPU_FEATURES")
      ->capture_default_str();
  command->add_option("--kv-cache-dtype", options.kv_cache_dtype, "How KV is stored; auto: f16")
      ->check(CLI::IsMember({"auto", "f16", "int8"}))
      ->capture_default_str();
  command
      ->add_option("--phase", options.phases,
                   "Steps to measure, SEQUENCESxTOKENS@CONTEXT; may be given several times")
      ->capture_default_str();
  command->add_option("--steps", options.steps, "Steps to measure of each phase")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_flag("--json", options.json, "Print one JSON object with the sums of all steps");
  command->callback([&options, &run] {
    run = [&options] {
      const Status status = profile(options);
      return status.ok() ? 0 : fail(status);
    };
  });
}

}  // namespace troupe
