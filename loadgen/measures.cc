#include "loadgen/measures.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/assert.h"
#include "loadgen/limits.h"

namespace troupe::loadgen {
namespace {

// The most requests at one instant, each from its start up to but without its last chunk.
size_t peak_concurrency(const std::deque<RequestRecord>& records) {
  std::vector<std::pair<Duration, int>> events;
  for (const RequestRecord& record : records) {
    if (record.ending != Ending::kOk) continue;
    events.emplace_back(record.start, 1);
    events.emplace_back(record.start + record.latency(), -1);
  }
  std::sort(events.begin(), events.end());  // of one instant, who leaves goes first
  int64_t now = 0, most = 0;
  for (const auto& [time, step] : events) {
    now += step;
    most = std::max(most, now);
  }
  return static_cast<size_t>(most);
}

// Chunks in the fullest second; seconds count from the first start.
double peak_tokens(const std::deque<RequestRecord>& records) {
  Duration first = Duration::max();
  for (const RequestRecord& record : records) {
    if (record.ending == Ending::kOk) first = std::min(first, record.start);
  }
  std::map<int64_t, size_t> buckets;
  size_t most = 0;
  for (const RequestRecord& record : records) {
    if (record.ending != Ending::kOk) continue;
    for (const Duration chunk : record.chunks) {
      const auto second =
          std::chrono::duration_cast<std::chrono::seconds>(record.start + chunk - first).count();
      most = std::max(most, ++buckets[second]);
    }
  }
  return static_cast<double>(most);
}

// The series of the requests that completed.
struct Series {
  std::vector<double> ttft, tpot, itl, e2el, first_text, queue, input, output;

  void add(const RequestRecord& record) {
    ttft.push_back(to_ms(record.ttft()));
    e2el.push_back(to_ms(record.latency()));
    queue.push_back(to_ms(record.start - record.scheduled));
    if (record.first_text >= Duration(0)) first_text.push_back(to_ms(record.first_text));
    for (size_t i = 1; i < record.chunks.size(); ++i) {
      itl.push_back(to_ms(record.chunks[i] - record.chunks[i - 1]));
    }
    if (const auto value = tpot_ms_of(record)) tpot.push_back(*value);
    input.push_back(record.prompt_tokens);
    output.push_back(record.output_tokens);
  }

  void into(Measures& measures) && {
    measures.ttft = summarize(std::move(ttft));
    measures.tpot = summarize(std::move(tpot));
    measures.itl = summarize(std::move(itl));
    measures.e2el = summarize(std::move(e2el));
    measures.first_text = summarize(std::move(first_text));
    measures.client_queue = summarize(std::move(queue));
    measures.input_lengths = summarize(std::move(input));
    measures.output_lengths = summarize(std::move(output));
  }
};

void count_completed(const RequestRecord& record, const Slos& slos, Measures& measures) {
  TROUPE_ASSERT(!record.chunks.empty());
  ++measures.completed;
  measures.input_tokens += record.prompt_tokens;
  measures.output_tokens += record.output_tokens;
  if (slos.any() && keeps(record, slos)) ++measures.good;
  if (record.output_tokens_aimed > 0 && record.output_tokens != record.output_tokens_aimed) {
    ++measures.other_output_length;
  }
  switch (record.token_source) {
    case TokenSource::kUsage:
      ++measures.counted_by_usage;
      break;
    case TokenSource::kTokenize:
      ++measures.counted_by_tokenize;
      break;
    case TokenSource::kChunks:
      ++measures.counted_by_chunks;
      break;
  }
}

void set_rates(Duration run, Measures& measures) {
  measures.seconds = to_seconds(run);
  if (measures.seconds <= 0.0) return;
  const auto per_second = [&](auto count) { return static_cast<double>(count) / measures.seconds; };
  measures.requests_per_s = per_second(measures.completed);
  measures.goodput_per_s = per_second(measures.good);
  measures.input_tokens_per_s = per_second(measures.input_tokens);
  measures.output_tokens_per_s = per_second(measures.output_tokens);
  measures.total_tokens_per_s = per_second(measures.input_tokens + measures.output_tokens);
}

}  // namespace

double percentile(const std::vector<double>& sorted, double percent) {
  TROUPE_ASSERT(percent >= 0.0 && percent <= 100.0);
  TROUPE_DCHECK(std::is_sorted(sorted.begin(), sorted.end()));
  if (sorted.empty()) return 0.0;
  const double place = percent / 100.0 * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

Summary summarize(std::vector<double> values) {
  Summary out;
  out.count = values.size();
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto count = static_cast<double>(values.size());
  double sum = 0.0, squares = 0.0;
  for (const double value : values) sum += value;
  out.mean = sum / count;
  for (const double value : values) squares += (value - out.mean) * (value - out.mean);
  out.std = std::sqrt(squares / count);
  out.least = values.front();
  out.p50 = percentile(values, 50);
  out.p90 = percentile(values, 90);
  out.p95 = percentile(values, 95);
  out.p99 = percentile(values, 99);
  out.most = values.back();
  return out;
}

Result<Slos> parse_slos(const std::vector<std::string>& texts) {
  Slos slos;
  for (const std::string& text : texts) {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    std::optional<double>* const target = name == "ttft"   ? &slos.ttft_ms
                                          : name == "tpot" ? &slos.tpot_ms
                                          : name == "e2el" ? &slos.e2el_ms
                                                           : nullptr;
    const std::string number = colon == std::string::npos ? "" : text.substr(colon + 1);
    double value = 0.0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (target == nullptr || error != std::errc() || end != number.data() + number.size() ||
        !(value > 0.0) || !std::isfinite(value)) {
      return invalid_argument(
          "--slo must be ttft, tpot or e2el, a colon and milliseconds above 0, "
          "not \"" +
          text + "\"; write for example --slo ttft:500");
    }
    if (target->has_value()) {
      return invalid_argument("--slo gives " + name + " twice; give it once");
    }
    *target = value;
  }
  return slos;
}

std::optional<double> tpot_ms_of(const RequestRecord& record) {
  if (record.output_tokens < 2) return std::nullopt;
  return to_ms(record.latency() - record.ttft()) / (record.output_tokens - 1);
}

bool keeps(const RequestRecord& record, const Slos& slos) {
  return !(slos.ttft_ms && to_ms(record.ttft()) > *slos.ttft_ms) &&
         !(slos.tpot_ms && tpot_ms_of(record).value_or(0.0) > *slos.tpot_ms) &&
         !(slos.e2el_ms && to_ms(record.latency()) > *slos.e2el_ms);
}

Measures measure(const std::deque<RequestRecord>& records, Duration run, const Slos& slos) {
  Measures measures;
  Series series;
  for (const RequestRecord& record : records) {
    measures.retries += record.tries - 1;
    switch (record.ending) {
      case Ending::kOk:
        count_completed(record, slos, measures);
        series.add(record);
        break;
      case Ending::kFailed: {
        ++measures.failed;
        ErrorCount& error = measures.errors[record.error];
        if (error.count++ == 0) error.sample = record.detail.substr(0, kErrorSampleBytesMax);
        break;
      }
      case Ending::kCancelled:
      case Ending::kOpen:
        ++measures.cancelled;
        break;
    }
  }
  set_rates(run, measures);
  std::move(series).into(measures);
  measures.peak_output_tokens_per_s = peak_tokens(records);
  measures.peak_concurrency = peak_concurrency(records);
  return measures;
}

}  // namespace troupe::loadgen
