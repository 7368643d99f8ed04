#include "base/trace/request_trace.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace troupe {
namespace {

using Json = nlohmann::json;

// What a line says, with its time still in the trace's own count.
struct Line {
  double seconds = 0.0;
  double input = 0.0, output = 0.0;
  std::vector<uint64_t> hashes;
};

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t comma = line.find(',');
    fields.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return fields;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_of(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;  // from_chars reads "nan" and "inf"
  return value;
}

// "2023-11-16 18:15:46.6805900" → seconds; days counted as by Howard Hinnant's days_from_civil.
std::optional<double> time_of(std::string_view text) {
  if (text.size() < 19) return std::nullopt;
  const auto year = number_of(text.substr(0, 4)), month = number_of(text.substr(5, 2)),
             day = number_of(text.substr(8, 2)), hour = number_of(text.substr(11, 2)),
             minute = number_of(text.substr(14, 2));
  const std::string_view rest = text.substr(17, text.find_first_of("+Z", 17) - 17);
  const auto second = number_of(rest);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const double y = *month <= 2 ? *year - 1 : *year;
  const auto era = static_cast<int64_t>(y) / 400;
  const int64_t of_era = static_cast<int64_t>(y) - era * 400;
  const auto m = static_cast<int64_t>(*month);
  const int64_t of_year = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + static_cast<int64_t>(*day) - 1;
  const int64_t days = era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
  return static_cast<double>(days) * 86400.0 + *hour * 3600.0 + *minute * 60.0 + *second;
}

std::optional<Line> json_line(const std::string& text, bool& bailian) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  Line line;
  bailian = json.contains("chat_id");
  const auto number = [&json](const char* key) -> std::optional<double> {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number()) return std::nullopt;
    return found->get<double>();
  };
  const auto time = number("timestamp"), input = number("input_length"),
             output = number("output_length");
  if (!time || !input || !output) return std::nullopt;
  line.seconds = bailian ? *time : *time / 1000.0;
  line.input = *input;
  line.output = *output;
  const auto hashes = json.find("hash_ids");
  if (hashes == json.end()) return line;
  if (!hashes->is_array()) return std::nullopt;
  for (const Json& hash : *hashes) {
    if (!hash.is_number_unsigned()) return std::nullopt;
    line.hashes.push_back(hash.get<uint64_t>());
  }
  return line;
}

// Which columns of a CSV file hold what.
struct Columns {
  size_t time = 0, input = 0, output = 0;
  bool is_date = false;
};

std::optional<Columns> columns_of(std::string_view header) {
  const auto fields = fields_of(header);
  const auto at = [&fields](std::string_view name) -> std::optional<size_t> {
    const auto found = std::find(fields.begin(), fields.end(), name);
    if (found == fields.end()) return std::nullopt;
    return static_cast<size_t>(found - fields.begin());
  };
  if (const auto time = at("TIMESTAMP"), in = at("ContextTokens"), out = at("GeneratedTokens");
      time && in && out) {
    return Columns{*time, *in, *out, true};
  }
  if (const auto time = at("Timestamp"), in = at("Request tokens"), out = at("Response tokens");
      time && in && out) {
    return Columns{*time, *in, *out, false};
  }
  return std::nullopt;
}

std::optional<Line> csv_line(std::string_view text, const Columns& columns) {
  const auto fields = fields_of(text);
  if (fields.size() <= std::max({columns.time, columns.input, columns.output})) return std::nullopt;
  const auto time =
      columns.is_date ? time_of(fields[columns.time]) : number_of(fields[columns.time]);
  const auto input = number_of(fields[columns.input]), output = number_of(fields[columns.output]);
  if (!time || !input || !output) return std::nullopt;
  return Line{*time, *input, *output, {}};
}

// The next line without its end, of which at most one byte more than allowed is kept.
bool next_line(std::istream& in, std::string& text) {
  text.clear();
  int next = in.get();
  if (next == std::istream::traits_type::eof()) return false;
  for (; next != '\n' && next != std::istream::traits_type::eof(); next = in.get()) {
    if (text.size() <= kTraceLineBytesMax) text.push_back(static_cast<char>(next));
  }
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return true;
}

Status bad_line(const std::string& name, size_t number, const std::string& what) {
  return invalid_argument(name + ":" + std::to_string(number) + ": " + what);
}

}  // namespace

uint32_t Trace::context_tokens() const {
  uint32_t most = 1;
  for (const TraceRequest& request : requests)
    most = std::max(most, request.input_tokens + request.output_tokens);
  return most + 1;
}

Result<Trace> read_trace(std::istream& in, const std::string& name) {
  Trace trace;
  std::vector<double> seconds;
  std::optional<Columns> columns;
  bool bailian = false;
  std::string text;
  for (size_t number = 1; next_line(in, text); ++number) {
    if (text.empty()) continue;
    if (text.size() > kTraceLineBytesMax) {
      return bad_line(name, number, "longer than " + std::to_string(kTraceLineBytesMax) + " bytes");
    }
    if (number == 1 && text[0] != '{') {
      columns = columns_of(text);
      if (columns) continue;
      return bad_line(name, 1,
                      "not a trace that can be read: JSON lines with timestamp, input_length and "
                      "output_length, or CSV with TIMESTAMP,ContextTokens,GeneratedTokens or "
                      "Timestamp,…,Request tokens,Response tokens");
    }
    const auto line = columns ? csv_line(text, *columns) : json_line(text, bailian);
    if (!line) return bad_line(name, number, "the line is not as the first one says");
    const auto fits = [](double tokens) { return tokens >= 0 && tokens <= kTraceTokensMax; };
    if (!fits(line->input) || !fits(line->output) || trace.requests.size() == kTraceRequestsMax)
      return bad_line(name, number, "too many tokens or requests");
    TraceRequest& request = trace.requests.emplace_back();
    // Some traces have requests that failed, without output: they are asked for one token.
    request.input_tokens = std::max(1U, static_cast<uint32_t>(line->input));
    request.output_tokens = std::max(1U, static_cast<uint32_t>(line->output));
    request.hashes = line->hashes;
    seconds.push_back(line->seconds);
  }
  if (trace.requests.empty()) return invalid_argument(name + ": no request is in there");
  trace.hash_tokens = bailian ? 16 : 512;
  const auto [earliest, latest] = std::minmax_element(seconds.begin(), seconds.end());
  const double first = *earliest;
  if (*latest - first > kTraceSecondsMax)
    return invalid_argument(name + ": its requests lie more than " +
                            std::to_string(kTraceSecondsMax / 86400.0) + " days apart");
  for (size_t i = 0; i < seconds.size(); ++i) {
    trace.requests[i].arrival =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds[i] - first));
  }
  std::stable_sort(
      trace.requests.begin(), trace.requests.end(),
      [](const TraceRequest& a, const TraceRequest& b) { return a.arrival < b.arrival; });
  return trace;
}

}  // namespace troupe
