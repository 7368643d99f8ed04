// Prints what this machine can do at best, and how fast that would let a model run.
//
//   limits [MODEL.gguf] [--threads N] [--phase SEQUENCES TOKENS CONTEXT]... [--json FILE]
//          [--kv-cache-dtype f16|int8]
//
// Nothing else may use the processors meanwhile. bench/engine/run puts every figure beside its
// limit.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "bench/limits/peaks.h"
#include "bench/limits/roofline.h"
#include "engine/model/gguf_file.h"

namespace troupe::limits {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMebi = size_t{1} << 20;

struct NamedPhase {
  std::string name;
  Phase phase;
};
const NamedPhase kPhases[] = {
    {"decode, context 128", {1, 1, 128}},
    {"decode, context 2048", {1, 1, 2048}},
    {"prefill of 512", {1, 512, 0}},
    {"prefill of 2048", {1, 2048, 0}},
    {"decode of 8, context 128", {8, 1, 128}},
    {"decode of 32, context 128", {32, 1, 128}},
    {"decode of 64, context 128", {64, 1, 128}},
};

// All threads together; each reads a share of `bytes`.
double print_read_rate(const char* what, size_t bytes, uint32_t threads) {
  const ReadRate rate = read_rate(bytes / threads, threads);
  std::printf("  read, %-28s %8.1f MiB  %7.1f GB/s  (median %.1f)\n", what,
              static_cast<double>(bytes) / kMebi, rate.best / 1e9, rate.median / 1e9);
  return rate.best;
}

Json print_machine(uint32_t threads) {
  std::printf("%u thread%s\n", threads, threads == 1 ? "" : "s");
  const CacheSizes caches = cache_sizes();
  Json out = {{"threads", threads}};
  const size_t l2 = caches.l2 == 0 ? kMebi : caches.l2;
  out["read_l2"] = print_read_rate("half of the L2 caches", l2 / 2 * threads, threads);
  out["read_l3"] = print_read_rate("four times the L2 caches", l2 * 4 * threads, threads);
  out["read_memory"] = print_read_rate("memory, or what seems so", 768 * kMebi, threads);
  for (const Unit unit : kUnits) {
    if (!machine_has(unit)) {
      std::printf("  %-34s absent on this machine\n", name_of(unit).data());
      continue;
    }
    const double rate = peak_rate(unit, threads);
    out[std::string(name_of(unit))] = rate;
    std::printf("  %-34s %19.0f GOP/s\n", name_of(unit).data(), rate / 1e9);
  }
  return out;
}

// The exact linear layers multiply 12-bit by 15-bit integers: as 16-bit words, or in two 8-bit
// digits of which each needs its own product (docs/adr/0002-exact-integer-linear-layers.md).
double linear_peak(const Json& machine) {
  double peak = machine.value(std::string(name_of(Unit::kWords)), 0.0);
  for (const Unit unit : {Unit::kBytes, Unit::kByteTile}) {
    peak = std::max(peak, machine.value(std::string(name_of(unit)), 0.0) / 2);
  }
  return peak;
}

// What to say of the model.
struct Asked {
  std::vector<Phase> phases;  // beside those above
  KvType kv_type = KvType::kF16;
};

// One that was asked for beside those above.
NamedPhase named(const Phase& phase) {
  const std::string sequences = std::to_string(phase.sequences);
  const std::string what = phase.tokens == 1
                               ? "decode of " + sequences
                               : sequences + " x " + std::to_string(phase.tokens) + " tokens";
  return {what + ", context " + std::to_string(phase.context), phase};
}

Json print_model(const GgufFile& file, const ModelConfig& config, const Json& machine,
                 uint32_t threads, const Asked& asked) {
  const Work one = work_of(file, config, asked.kv_type, {});
  std::printf("\nthe model, with %u thread%s: the least time that reading and multiplying take\n",
              threads, threads == 1 ? "" : "s");
  Rates rates{.linear = linear_peak(machine),
              .floats = machine.value(std::string(name_of(Unit::kFloat)), 0.0)};
  const double weights_rate =
      print_read_rate("the model's weights", static_cast<size_t>(one.weight_bytes), threads);
  Json out = Json::array();
  std::vector<NamedPhase> phases(std::begin(kPhases), std::end(kPhases));
  for (const Phase& phase : asked.phases) phases.push_back(named(phase));
  for (const auto& [name, phase] : phases) {
    const Work work = work_of(file, config, asked.kv_type, phase);
    // As fast as so many bytes can be read: what fits a cache of many programs' at one context
    // length may not at another.
    const double bytes = work.weight_bytes + work.kv_bytes;
    rates.read = read_rate(static_cast<size_t>(bytes) / threads, threads).best;
    const double seconds = least_seconds(work, rates);
    const double tokens = static_cast<double>(phase.sequences) * phase.tokens;
    std::printf("  %-28s %7.1f MB  %5.1f GB/s  %8.2f GOP  %8.2f ms  %9.0f tokens/s\n", name.c_str(),
                bytes / 1e6, rates.read / 1e9, (work.linear_ops + work.float_ops) / 1e9,
                seconds * 1e3, tokens / seconds);
    out.push_back({{"phase", name},
                   {"shape", {phase.sequences, phase.tokens, phase.context}},
                   {"bytes", bytes},
                   {"read_bytes_per_second", rates.read},
                   {"operations", work.linear_ops + work.float_ops},
                   {"seconds", seconds},
                   {"tokens_per_second", tokens / seconds}});
  }
  return {{"read_weights", weights_rate}, {"phases", out}};
}

int run(const std::string& model_path, uint32_t threads, const Asked& asked,
        const std::string& json_path) {
  Json report = {{"one_thread", print_machine(1)}};
  report["all_threads"] = threads > 1 ? print_machine(threads) : report["one_thread"];
  if (!model_path.empty()) {
    const auto file = GgufFile::open(model_path);
    const auto fail = [](const Status& status) {
      std::fprintf(stderr, "limits: %s\n", status.message().c_str());
      return 1;
    };
    if (!file.ok()) return fail(file.status());
    const auto model = read_model(*file.value());
    if (!model.ok()) return fail(model.status());
    report["model"] =
        print_model(*file.value(), model->config, report["all_threads"], threads, asked);
  }
  if (json_path.empty()) return 0;
  std::ofstream out(json_path);
  out << report.dump(2) << '\n';
  out.close();
  if (out) return 0;
  std::fprintf(stderr, "limits: %s cannot be written; name a file in an existing folder\n",
               json_path.c_str());
  return 1;
}

}  // namespace
}  // namespace troupe::limits

int main(int argc, char** argv) {
  CLI::App app("What this machine can do at best, and how fast that would let a model run");
  std::string model, json;
  uint32_t threads = std::max(1U, std::thread::hardware_concurrency());
  app.add_option("MODEL", model, "GGUF file");
  app.add_option("--threads", threads, "threads that compute")->check(CLI::Range(1, 1024));
  std::vector<std::tuple<uint32_t, uint32_t, uint32_t>> shapes;
  app.add_option("--phase", shapes, "a further step: sequences, new tokens of each, tokens before");
  std::string kv_type = "f16";
  app.add_option("--kv-cache-dtype", kv_type, "how keys and values are stored")
      ->check(CLI::IsMember({"f16", "int8"}));
  app.add_option("--json", json, "file to write the same figures to");
  CLI11_PARSE(app, argc, argv);
  troupe::limits::Asked asked;
  if (kv_type == "int8") asked.kv_type = troupe::KvType::kInt8;
  for (const auto& [sequences, tokens, context] : shapes) {
    asked.phases.push_back({sequences, tokens, context});
  }
  return troupe::limits::run(model, threads, asked, json);
}
