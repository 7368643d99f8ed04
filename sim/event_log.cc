#include "sim/event_log.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace troupe::sim {

EventLog::EventLog(const Clock& clock, Print print) : clock_(clock), print_(std::move(print)) {}

void EventLog::mix(uint64_t value) {
  digest_ = (digest_ ^ value) * 0x100000001b3U;
  digest_ ^= digest_ >> 29;
}

void EventLog::note(std::string_view what, const std::string& who, uint64_t first,
                    uint64_t second) {
  Event& event = ring_[count_++ % kEventsShown];
  event.time = clock_.now();
  event.what = what;
  event.who = who;
  event.first = first;
  event.second = second;
  for (const char c : what) mix(static_cast<unsigned char>(c));
  for (const char c : who) mix(static_cast<unsigned char>(c));
  mix(first);
  mix(second);
  mix(static_cast<uint64_t>(event.time.time_since_epoch().count()));
  if (print_) print_(line_of(event));
}

std::string EventLog::line_of(const Event& event) {
  char time[32];
  const double seconds = std::chrono::duration<double>(event.time.time_since_epoch()).count();
  // Runs begin an hour after the clock's epoch.
  std::snprintf(time, sizeof time, "%12.6f s  ", seconds - 3600.0);
  return time + event.who + ": " + std::string(event.what) + " " + std::to_string(event.first) +
         " " + std::to_string(event.second);
}

void EventLog::violate(std::string_view oracle, std::string what) {
  if (violated()) return;
  violated_oracle_ = oracle;
  violation_ = std::move(what);
}

std::vector<std::string> EventLog::latest() const {
  std::vector<std::string> lines;
  for (uint64_t i = count_ - std::min<uint64_t>(count_, kEventsShown); i < count_; ++i) {
    lines.push_back(line_of(ring_[i % kEventsShown]));
  }
  return lines;
}

}  // namespace troupe::sim
