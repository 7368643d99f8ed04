#include "sim/report.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numeric>

namespace troupe::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

__attribute__((format(printf, 2, 3))) void add(std::string& text, const char* format, ...) {
  char line[256];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  text += line;
}

Json json_of(const Percentiles& values) {
  return {{"mean", values.mean},
          {"p50", values.p50},
          {"p90", values.p90},
          {"p99", values.p99},
          {"max", values.most}};
}

void add_row(std::string& text, const char* name, const Percentiles& values) {
  add(text, "%-10s %10.2f %10.2f %10.2f %10.2f %10.2f\n", name, values.mean * 1e3, values.p50 * 1e3,
      values.p90 * 1e3, values.p99 * 1e3, values.most * 1e3);
}

}  // namespace

Percentiles percentiles_of(std::vector<float>& values) {
  if (values.empty()) return {};
  const auto at = [&values](double share) {
    const auto rank = static_cast<ptrdiff_t>(share * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + rank, values.end());
    return static_cast<double>(values[static_cast<size_t>(rank)]);
  };
  Percentiles result;
  result.mean =
      std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  result.p50 = at(0.5);
  result.p90 = at(0.9);
  result.p99 = at(0.99);
  result.most = at(1.0);
  return result;
}

Report report_of(Outcome& outcome, double part_bytes_factor) {
  Measured& measured = outcome.measured;
  Report report;
  report.ttft = percentiles_of(measured.ttft);
  report.tpot = percentiles_of(measured.tpot);
  report.itl = percentiles_of(measured.itl);
  report.e2e = percentiles_of(measured.e2e);
  report.requests = measured.requests;
  report.completed = measured.completed;
  report.failed = measured.failed;
  report.refused = measured.refused;
  report.left = measured.left;
  const double seconds = std::chrono::duration<double>(outcome.virtual_time).count();
  report.virtual_seconds = seconds;
  if (seconds > 0) {
    report.requests_per_second = static_cast<double>(measured.completed) / seconds;
    report.output_tokens_per_second = static_cast<double>(measured.output_tokens) / seconds;
    report.goodput = static_cast<double>(measured.within_slo) / seconds;
  }
  if (measured.prompt_tokens > 0) {
    report.cache_hit_rate =
        static_cast<double>(measured.cached_tokens) / static_cast<double>(measured.prompt_tokens);
  }
  report.moved_bytes = static_cast<double>(outcome.network.part_bytes) * part_bytes_factor;
  report.moved_parts = outcome.network.parts;
  report.imports_whole = outcome.imports_whole;
  report.imports_cut = outcome.imports_cut;
  if (outcome.imports_whole > 0)
    report.exposed_seconds = outcome.moved_exposed_seconds / outcome.imports_whole;
  if (report.ttft.mean > 0) report.exposed_share = report.exposed_seconds / report.ttft.mean;
  report.events = outcome.events;
  report.digest = outcome.digest;
  report.workers = std::move(outcome.workers);
  return report;
}

std::string to_text(const Report& report) {
  std::string text;
  add(text, "requests   %llu: %llu completed, %llu failed, %llu refused, %llu left\n",
      static_cast<unsigned long long>(report.requests),
      static_cast<unsigned long long>(report.completed),
      static_cast<unsigned long long>(report.failed),
      static_cast<unsigned long long>(report.refused),
      static_cast<unsigned long long>(report.left));
  add(text, "time       %.1f s simulated: %.2f requests/s, %.1f output tokens/s, goodput %.2f/s\n",
      report.virtual_seconds, report.requests_per_second, report.output_tokens_per_second,
      report.goodput);
  add(text, "cache      %.1f %% of prompt tokens found\n", report.cache_hit_rate * 100.0);
  add(text, "moved      %.2f GB of KV in %llu parts; %.0f prompts whole, %.0f cut short\n",
      report.moved_bytes / 1e9, static_cast<unsigned long long>(report.moved_parts),
      report.imports_whole, report.imports_cut);
  add(text, "exposed    %.2f ms of transfer per prompt computed elsewhere, %.2f %% of TTFT\n\n",
      report.exposed_seconds * 1e3, report.exposed_share * 100.0);
  add(text, "%-10s %10s %10s %10s %10s %10s\n", "ms", "mean", "p50", "p90", "p99", "max");
  add_row(text, "TTFT", report.ttft);
  add_row(text, "TPOT", report.tpot);
  add_row(text, "ITL", report.itl);
  add_row(text, "E2E", report.e2e);
  add(text, "\n%-14s %-8s %6s %10s %12s %10s %9s\n", "worker", "role", "busy", "steps", "tokens",
      "evictions", "cache");
  for (const Outcome::WorkerUse& use : report.workers) {
    const double hits = use.prefix_query_tokens > 0
                            ? static_cast<double>(use.prefix_hit_tokens) /
                                  static_cast<double>(use.prefix_query_tokens)
                            : 0.0;
    add(text, "%-14s %-8s %5.1f%% %10llu %12llu %10llu %8.1f%%\n", use.node.c_str(),
        wire::to_string(use.role), use.busy * 100.0, static_cast<unsigned long long>(use.steps),
        static_cast<unsigned long long>(use.tokens), static_cast<unsigned long long>(use.evictions),
        hits * 100.0);
  }
  return text;
}

std::string to_json(const Report& report) {
  Json json = {{"requests", report.requests},
               {"completed", report.completed},
               {"failed", report.failed},
               {"refused", report.refused},
               {"left", report.left},
               {"virtual_seconds", report.virtual_seconds},
               {"requests_per_second", report.requests_per_second},
               {"output_tokens_per_second", report.output_tokens_per_second},
               {"goodput_per_second", report.goodput},
               {"cache_hit_rate", report.cache_hit_rate},
               {"ttft_seconds", json_of(report.ttft)},
               {"tpot_seconds", json_of(report.tpot)},
               {"itl_seconds", json_of(report.itl)},
               {"e2e_seconds", json_of(report.e2e)},
               {"kv_moved_bytes", report.moved_bytes},
               {"kv_moved_parts", report.moved_parts},
               {"kv_exposed_seconds", report.exposed_seconds},
               {"kv_exposed_share_of_ttft", report.exposed_share},
               {"kv_imports_whole", report.imports_whole},
               {"kv_imports_cut", report.imports_cut},
               {"events", report.events},
               {"digest", hex(report.digest)},
               {"workers", Json::array()}};
  for (const Outcome::WorkerUse& use : report.workers) {
    json["workers"].push_back({{"node", use.node},
                               {"role", wire::to_string(use.role)},
                               {"busy", use.busy},
                               {"steps", use.steps},
                               {"tokens", use.tokens},
                               {"evictions", use.evictions},
                               {"prefix_query_tokens", use.prefix_query_tokens},
                               {"prefix_hit_tokens", use.prefix_hit_tokens}});
  }
  return json.dump(2);
}

}  // namespace troupe::sim
