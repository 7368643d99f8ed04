#pragma once
// What happened in a simulated run: its latest events for people, all of them as a fingerprint, and
// the first rule that was broken.

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace troupe::sim {

// How many events a failure shows.
inline constexpr size_t kEventsShown = 50;

class EventLog {
 public:
  using Print = std::function<void(const std::string& line)>;

  // `clock` gives the virtual time and outlives the log. `print`, if any, hears every event.
  explicit EventLog(const Clock& clock, Print print = nullptr);

  // `what` must be a literal. `who` is a node; the numbers say what else matters: a request, a
  // count.
  void note(std::string_view what, const std::string& who, uint64_t first = 0, uint64_t second = 0);

  // A rule was broken. Only the first one counts: what follows from it is noise.
  void violate(std::string_view oracle, std::string what);
  [[nodiscard]] bool violated() const { return !violated_oracle_.empty(); }
  [[nodiscard]] const std::string& violated_oracle() const { return violated_oracle_; }
  [[nodiscard]] const std::string& violation() const { return violation_; }

  [[nodiscard]] std::vector<std::string> latest() const;
  // Of all events and their times, in order (FNV-1a).
  [[nodiscard]] uint64_t digest() const { return digest_; }
  [[nodiscard]] uint64_t count() const { return count_; }

 private:
  struct Event {
    TimePoint time;
    std::string_view what;
    std::string who;
    uint64_t first = 0, second = 0;
  };
  [[nodiscard]] static std::string line_of(const Event& event);
  void mix(uint64_t value);

  const Clock& clock_;
  const Print print_;
  std::array<Event, kEventsShown> ring_;
  uint64_t count_ = 0;
  uint64_t digest_ = 0xcbf29ce484222325U;
  std::string violated_oracle_, violation_;
};

}  // namespace troupe::sim
