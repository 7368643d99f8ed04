#include "loadgen/report.h"

#include <cstdarg>
#include <cstdio>

namespace troupe::loadgen {
namespace {

using Json = nlohmann::ordered_json;

[[gnu::format(printf, 1, 2)]] std::string format(const char* pattern, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, pattern);
  const int size = std::vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return {text, std::min(static_cast<size_t>(std::max(size, 0)), sizeof text - 1)};
}

std::string row(const char* name, const Summary& summary) {
  if (summary.count == 0) return format("  %-6s      none\n", name);
  return format("  %-6s %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f\n", name, summary.mean,
                summary.p50, summary.p90, summary.p95, summary.p99, summary.most, summary.std);
}

std::string lengths(const Summary& summary) {
  if (summary.count == 0) return "none";
  if (summary.least == summary.most) return format("%.0f each", summary.mean);
  return format("%.1f (%.0f to %.0f)", summary.mean, summary.least, summary.most);
}

std::string goodput_line(const Report& report) {
  const Measures& m = report.measures;
  std::string rules;
  const auto add = [&rules](const char* name, const std::optional<double>& limit) {
    if (limit) rules += (rules.empty() ? "" : ", ") + format("%s <= %g ms", name, *limit);
  };
  add("TTFT", report.slos.ttft_ms);
  add("TPOT", report.slos.tpot_ms);
  add("E2E", report.slos.e2el_ms);
  return format("  goodput      %.3f requests/s: %zu of %zu keep ", m.goodput_per_s, m.good,
                m.completed) +
         rules + "\n";
}

void add_series(Json& json, const char* name, const Summary& summary) {
  const auto key = [name](const char* what) { return std::string(what) + "_" + name + "_ms"; };
  json[key("mean")] = summary.mean;
  json[key("median")] = summary.p50;
  json[key("std")] = summary.std;
  json[key("p50")] = summary.p50;
  json[key("p90")] = summary.p90;
  json[key("p95")] = summary.p95;
  json[key("p99")] = summary.p99;
  json[key("min")] = summary.least;
  json[key("max")] = summary.most;
}

Json json_of_summary(const Summary& summary) {
  return {{"count", summary.count}, {"mean", summary.mean}, {"std", summary.std},
          {"min", summary.least},   {"p50", summary.p50},   {"p90", summary.p90},
          {"p95", summary.p95},     {"p99", summary.p99},   {"max", summary.most}};
}

Json json_of_slos(const Slos& slos) {
  Json out = Json::object();
  if (slos.ttft_ms) out["ttft"] = *slos.ttft_ms;
  if (slos.tpot_ms) out["tpot"] = *slos.tpot_ms;
  if (slos.e2el_ms) out["e2el"] = *slos.e2el_ms;
  return out;
}

const char* name_of(Ending ending) {
  switch (ending) {
    case Ending::kOk:
      return "ok";
    case Ending::kFailed:
      return "failed";
    case Ending::kOpen:
    case Ending::kCancelled:
      break;
  }
  return "cancelled";
}

const char* name_of(TokenSource source) {
  return source == TokenSource::kUsage      ? "usage"
         : source == TokenSource::kTokenize ? "tokenize"
                                            : "chunks";
}

}  // namespace

std::vector<std::string> warnings_of(const Report& report) {
  const Measures& m = report.measures;
  std::vector<std::string> out;
  for (const std::string& reason : report.client.reasons) {
    out.push_back("the client was the bottleneck: " + reason +
                  "; lower the load, or give the client more of the machine");
  }
  if (report.was_interrupted) out.emplace_back("interrupted: this is what was done until then");
  if (m.counted_by_tokenize > 0) {
    out.push_back(format("%zu answers without usage: their tokens were counted by /tokenize",
                         m.counted_by_tokenize));
  }
  if (m.counted_by_chunks > 0) {
    out.push_back(
        format("%zu answers without usage and without /tokenize: each chunk with text "
               "counts as one token, prompts as long as aimed at",
               m.counted_by_chunks));
  }
  if (m.other_output_length > 0) {
    out.push_back(
        format("%zu answers are not as long as asked for: the server does not heed "
               "ignore_eos",
               m.other_output_length));
  }
  if (m.first_text.count > 0 && m.first_text.p50 - m.ttft.p50 > 0.02 * m.ttft.p50 + 0.5) {
    out.push_back(
        format("answers begin with a chunk without text: TTFT is the time of that chunk "
               "(median %.2f ms), the first text comes after %.2f ms",
               m.ttft.p50, m.first_text.p50));
  }
  return out;
}

std::string table_of(const Report& report) {
  const Measures& m = report.measures;
  std::string out = report.title + "\n";
  out += format("  requests     %zu completed, %zu failed, %zu cancelled in %.2f s", m.completed,
                m.failed, m.cancelled, m.seconds);
  out += m.retries > 0 ? format(", %zu retries\n", m.retries) : "\n";
  out += "  tokens       input " + lengths(m.input_lengths) + ", output " +
         lengths(m.output_lengths) + "\n";
  out += format(
      "  throughput   %.3f requests/s, %.2f output tokens/s (peak %.0f), "
      "%.2f tokens/s in all\n",
      m.requests_per_s, m.output_tokens_per_s, m.peak_output_tokens_per_s, m.total_tokens_per_s);
  if (report.slos.any()) out += goodput_line(report);
  out += format("  at once      %zu at most; waited in the client %.2f ms (mean)\n\n",
                m.peak_concurrency, m.client_queue.mean);
  out += format("  %-6s %9s %9s %9s %9s %9s %9s %9s\n", "ms", "mean", "p50", "p90", "p95", "p99",
                "max", "std");
  out += row("TTFT", m.ttft) + row("TPOT", m.tpot) + row("ITL", m.itl) + row("E2E", m.e2el);
  if (!m.errors.empty()) out += "\n";
  for (const auto& [kind, error] : m.errors) {
    out += format("  failed: %zu x ", error.count) + kind + ": " + error.sample + "\n";
  }
  const auto warnings = warnings_of(report);
  if (!warnings.empty()) out += "\n";
  for (const std::string& warning : warnings) out += "  warning: " + warning + "\n";
  return out;
}

Json json_of(const Report& report) {
  const Measures& m = report.measures;
  Json out;
  out["duration"] = m.seconds;
  out["completed"] = m.completed;
  out["failed"] = m.failed;
  out["cancelled"] = m.cancelled;
  out["retries"] = m.retries;
  out["total_input_tokens"] = m.input_tokens;
  out["total_output_tokens"] = m.output_tokens;
  out["request_throughput"] = m.requests_per_s;
  out["request_goodput"] = report.slos.any() ? Json(m.goodput_per_s) : Json(nullptr);
  out["good"] = report.slos.any() ? Json(m.good) : Json(nullptr);
  out["slos_ms"] = json_of_slos(report.slos);
  out["input_throughput"] = m.input_tokens_per_s;
  out["output_throughput"] = m.output_tokens_per_s;
  out["total_token_throughput"] = m.total_tokens_per_s;
  out["max_output_tokens_per_s"] = m.peak_output_tokens_per_s;
  out["max_concurrent_requests"] = m.peak_concurrency;
  add_series(out, "ttft", m.ttft);
  add_series(out, "tpot", m.tpot);
  add_series(out, "itl", m.itl);
  add_series(out, "e2el", m.e2el);
  add_series(out, "first_text", m.first_text);
  add_series(out, "client_queue", m.client_queue);
  out["input_lengths"] = json_of_summary(m.input_lengths);
  out["output_lengths"] = json_of_summary(m.output_lengths);
  out["errors"] = Json::object();
  for (const auto& [kind, error] : m.errors) {
    out["errors"][kind] = {{"count", error.count}, {"sample", error.sample}};
  }
  out["token_counts_from"] = {{"usage", m.counted_by_usage},
                              {"tokenize", m.counted_by_tokenize},
                              {"chunks", m.counted_by_chunks}};
  out["other_output_length"] = m.other_output_length;
  out["interrupted"] = report.was_interrupted;
  out["client"] = {{"is_bottleneck", report.client.is_bottleneck()},
                   {"reasons", report.client.reasons},
                   {"cpu_share", report.client.cpu_share},
                   {"loop_lag_ms", json_of_summary(report.client.loop_lag_ms)},
                   {"lateness_ms", json_of_summary(report.client.lateness_ms)}};
  out["warnings"] = warnings_of(report);
  out["config"] = report.config;
  out["environment"] = report.environment;
  return out;
}

std::string json_lines_of(const std::deque<RequestRecord>& records) {
  std::string out;
  for (const RequestRecord& record : records) {
    Json line;
    line["index"] = record.index;
    line["conversation"] = record.conversation;
    line["turn"] = record.turn;
    line["ending"] = name_of(record.ending);
    line["scheduled_s"] = to_seconds(record.scheduled);
    line["start_s"] = to_seconds(record.start);
    line["end_s"] = to_seconds(record.end);
    line["http_status"] = record.http_status;
    line["tries"] = record.tries;
    if (record.ending == Ending::kOk) {
      line["ttft_ms"] = to_ms(record.ttft());
      line["e2el_ms"] = to_ms(record.latency());
      const auto tpot = tpot_ms_of(record);
      line["tpot_ms"] = tpot ? Json(*tpot) : Json(nullptr);
      line["prompt_tokens"] = record.prompt_tokens;
      line["output_tokens"] = record.output_tokens;
      line["token_source"] = name_of(record.token_source);
      Json& gaps = line["itl_ms"] = Json::array();
      for (size_t i = 1; i < record.chunks.size(); ++i) {
        gaps.push_back(to_ms(record.chunks[i] - record.chunks[i - 1]));
      }
    } else {
      line["chunks"] = record.chunks.size();
      line["error"] = record.error;
      line["detail"] = record.detail;
    }
    out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  return out;
}

}  // namespace troupe::loadgen
