#include "apps/troupe/top_table.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "actors/gateway/text/escape.h"

namespace troupe {
namespace {

using nlohmann::json;

constexpr size_t kCellBytesMax = 48;
constexpr size_t kReasonBytesMax = 200;
constexpr size_t kTransitionsShown = 5;
constexpr int kBarCells = 10;
constexpr const char* kUnknown = "-";

const json& member(const json& object, const char* key) {
  static const json kNull;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return found == object.end() ? kNull : *found;
}

std::string text(const json& object, const char* key, size_t bytes_max = kCellBytesMax) {
  const json& value = member(object, key);
  return value.is_string() ? printable_excerpt(value.get_ref<const std::string&>(), bytes_max)
                           : kUnknown;
}

// Not a number: absent.
double number(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_number() ? value.get<double>() : std::nan("");
}

std::string formatted(const char* format, double value) {
  if (!std::isfinite(value)) return kUnknown;
  char out[64];
  std::snprintf(out, sizeof(out), format, value);
  return out;
}

std::string count(double value) {
  return formatted("%.0f", value);
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return kUnknown;
  if (seconds < 1e-3) return formatted("%.0f us", seconds * 1e6);
  if (seconds < 1.0) return formatted("%.1f ms", seconds * 1e3);
  if (seconds < 120.0) return formatted("%.1f s", seconds);
  return formatted("%.0f min", seconds / 60.0);
}

// "[###.......]  31 %"
std::string bar(double used, double total) {
  if (!std::isfinite(used) || !std::isfinite(total) || total <= 0.0) return kUnknown;
  const double share = std::clamp(used / total, 0.0, 1.0);
  const int filled = static_cast<int>(std::lround(share * kBarCells));
  return "[" + std::string(static_cast<size_t>(filled), '#') +
         std::string(static_cast<size_t>(kBarCells - filled), '.') + "] " +
         formatted("%3.0f %%", share * 100.0);
}

// Characters, as far as a terminal gives each one cell.
size_t width(const std::string& cell) {
  return count_code_points(cell);
}

// Columns as wide as their widest cell; the first `left` columns are texts, the others numbers.
class Table {
 public:
  Table(std::vector<std::string> head, size_t left) : left_(left) { add(std::move(head)); }

  void add(std::vector<std::string> row) {
    row.resize(rows_.empty() ? row.size() : rows_.front().size());
    widths_.resize(row.size());
    for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], width(row[i]));
    rows_.push_back(std::move(row));
  }

  void print(std::vector<std::string>& lines) const {
    for (const auto& row : rows_) {
      std::string line;
      for (size_t i = 0; i < row.size(); ++i) {
        const std::string space(widths_[i] - width(row[i]), ' ');
        line += (i == 0 ? "" : "  ") + (i < left_ ? row[i] + space : space + row[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      lines.push_back(std::move(line));
    }
  }

 private:
  const size_t left_;
  std::vector<size_t> widths_;
  std::vector<std::vector<std::string>> rows_;
};

std::string node_of_worker(const json& worker) {
  const json& endpoint = member(worker, "endpoint");
  const std::string address = endpoint.is_string() ? endpoint.get<std::string>() : "";
  return address.substr(0, address.rfind('/'));
}

struct Totals {
  double requests = 0, running = 0, waiting = 0, queued = 0, blocks = 0, used = 0;
  void add(double& total, double value) { total += std::isfinite(value) ? value : 0.0; }
};

void draw_workers(const json& body, std::vector<std::string>& lines) {
  std::map<std::string, double> round_trips;
  for (const json& peer : member(body, "peers")) {
    const json& node = member(peer, "node");
    if (node.is_string()) {
      round_trips[node.get<std::string>()] = number(peer, "round_trip_seconds");
    }
  }
  // Where all have the same model, its column would say nothing.
  std::set<std::string> models;
  for (const json& worker : member(body, "workers")) models.insert(text(worker, "model"));
  const bool several = models.size() > 1;
  Table table({several ? "WORKER (MODEL)" : "WORKER", "ROLE", "STATE", "REQ", "RUN", "WAIT",
               "QUEUED", "KV USED", "STEP", "TOKEN", "HEARD", "RTT"},
              3);
  std::vector<std::string> reasons;
  Totals sum;
  for (const json& worker : member(body, "workers")) {
    const std::string state = text(worker, "state", kReasonBytesMax);
    // What follows the word for the state is told below the table.
    const std::string word = state.substr(0, state.find(": "));
    if (word != state) reasons.push_back(text(worker, "endpoint") + " " + state);
    // What a worker had to do before it was gone is nobody's work now.
    static const json kNoLoad;
    const bool gone = word == "lost" || word == "left";
    const json& load = gone ? kNoLoad : member(worker, "load");
    const double requests = number(worker, "requests"), running = number(load, "running"),
                 waiting = number(load, "waiting"), queued = number(load, "queued_tokens"),
                 blocks = number(load, "kv_blocks_total"), used = number(load, "kv_blocks_used");
    const auto round_trip = round_trips.find(node_of_worker(worker));
    table.add({text(worker, "endpoint") + (several ? " (" + text(worker, "model") + ")" : ""),
               text(worker, "role"), printable_excerpt(word, kCellBytesMax), count(requests),
               count(running), count(waiting), count(queued), bar(used, blocks),
               duration(number(load, "seconds_per_step")),
               duration(number(load, "seconds_per_token")),
               duration(number(worker, "heard_ms") / 1e3),
               round_trip == round_trips.end() ? kUnknown : duration(round_trip->second)});
    sum.add(sum.requests, requests);
    sum.add(sum.running, running);
    sum.add(sum.waiting, waiting);
    sum.add(sum.queued, queued);
    sum.add(sum.blocks, blocks);
    sum.add(sum.used, used);
  }
  table.add({"total", "", "", count(sum.requests), count(sum.running), count(sum.waiting),
             count(sum.queued), bar(sum.used, sum.blocks)});
  table.print(lines);
  if (!reasons.empty()) lines.emplace_back();
  lines.insert(lines.end(), reasons.begin(), reasons.end());
}

void draw_routers(const json& body, std::vector<std::string>& lines) {
  const json& routers = member(body, "routers");
  if (!routers.is_array() || routers.empty()) return;
  Table table({"ROUTER", "STATE", "REQUESTS", "SINCE", "TRANSITIONS"}, 2);
  for (const json& router : routers) {
    table.add({text(router, "endpoint"), text(router, "state"), count(number(router, "requests")),
               duration(number(router, "since_ms") / 1e3), count(number(router, "transitions"))});
  }
  lines.emplace_back();
  table.print(lines);
}

void draw_transitions(const json& body, std::vector<std::string>& lines) {
  const json& transitions = member(body, "transitions");
  if (!transitions.is_array() || transitions.empty()) return;
  lines.emplace_back();
  lines.emplace_back("LATEST TRANSITIONS");
  const size_t from = transitions.size() - std::min(transitions.size(), kTransitionsShown);
  for (size_t i = from; i < transitions.size(); ++i) {
    const json& transition = transitions[i];
    std::string line = text(transition, "kind") + " " + text(transition, "endpoint") + " " +
                       text(transition, "transition");
    const std::string detail = text(transition, "detail", kReasonBytesMax);
    if (!detail.empty() && detail != kUnknown) line += ": " + detail;
    lines.push_back(std::move(line));
  }
}

}  // namespace

Result<std::vector<std::string>> top_table(std::string_view url, std::string_view body) {
  const json parsed = json::parse(body, nullptr, /*allow_exceptions=*/false);
  const json& workers = member(parsed, "workers");
  if (!workers.is_array()) {
    return Status(StatusCode::kDataLoss,
                  std::string(url) + "/cluster is not the answer of a Troupe router or monitor");
  }
  const auto accepting = std::count_if(workers.begin(), workers.end(), [](const json& worker) {
    return member(worker, "accepting") == true;
  });
  const bool healthy = member(parsed, "healthy") == true;
  std::vector<std::string> lines;
  lines.push_back(std::string(url) + "   " +
                  (healthy ? "ready" : "cannot serve: " + text(parsed, "reason", kReasonBytesMax)) +
                  "   " + count(number(parsed, "requests")) + " requests   " +
                  std::to_string(accepting) + " of " + std::to_string(workers.size()) +
                  " workers take requests");
  lines.emplace_back();
  draw_workers(parsed, lines);
  draw_routers(parsed, lines);
  draw_transitions(parsed, lines);
  return lines;
}

}  // namespace troupe
