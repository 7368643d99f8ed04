// What goes wrong in a simulated cluster. Who, when and for how long is drawn from the seed.

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "sim/world.h"

namespace troupe::sim {
namespace {

enum FaultKind : uint32_t {
  kWorkerCrash,
  kFrontCrash,
  kFreeze,
  kPartition,
  kSlowLink,
  kDeviceFailure,
  kStraggler,
  kClockJump,
  kDrain,
  kFaultKinds,
};

}  // namespace

void World::schedule_faults() {
  const FaultOptions& faults = options_.faults;
  const uint32_t counts[kFaultKinds] = {
      faults.worker_crashes, faults.front_crashes, faults.freezes,
      faults.partitions,     faults.slow_links,    faults.device_failures,
      faults.stragglers,     faults.clock_jumps,   faults.drains};
  const auto window = static_cast<uint64_t>((last_arrival_ - start_).count());
  for (uint32_t kind = 0; kind < kFaultKinds; ++kind) {
    for (uint32_t i = 0; i < counts[kind]; ++i) {
      events_.at(start_ + Duration(rng_.below(window + 1)), [this, kind] { strike(kind); });
    }
  }
  events_.at(last_arrival_ + std::chrono::nanoseconds(1), [this] { heal(); });
}

void World::strike(uint32_t kind) {
  if (healed_) return;
  switch (kind) {
    case kWorkerCrash:
      return crash_worker();
    case kFrontCrash:
      return crash_front();
    case kFreeze:
      return freeze_one();
    case kPartition:
      return cut_link();
    case kSlowLink:
      return slow_link();
    case kDeviceFailure:
      return disturb_device(true);
    case kStraggler:
      return disturb_device(false);
    case kDrain:
      return drain_one();
    case kClockJump:
      break;
    default:
      TROUPE_ASSERT(false, kind);
  }
  const Duration forward = std::chrono::milliseconds(rng_.between(1, 20000));
  const uint64_t index = rng_.below(workers_.size());
  if (!workers_[index].now) return;
  log_.note("has its clock jump", worker_node(index), static_cast<uint64_t>(forward.count()));
  workers_[index].now->process().clock().jump(forward);
}

Duration World::fault_length() {
  return Duration(
      rng_.between(1'000'000, static_cast<uint64_t>(options_.faults.lasts_max.count())));
}

void World::crash_worker() {
  const uint64_t index = rng_.below(workers_.size());
  const bool silent = rng_.chance(0.5);
  const Duration length = fault_length();
  if (!workers_[index].now) return;
  if (silent) network_.hide_death(worker_node(index));
  stop_worker(index);
  events_.after(length, [this, index] {
    if (!workers_[index].now) start_worker(index);
  });
}

void World::crash_front() {
  const uint64_t index = rng_.below(fronts_.size());
  const bool silent = rng_.chance(0.5);
  const Duration length = fault_length();
  if (!fronts_[index].now) return;
  if (silent) network_.hide_death(front_node(index));
  stop_front(index);
  events_.after(length, [this, index] {
    if (!fronts_[index].now) start_front(index);
  });
}

void World::freeze_one() {
  const uint64_t index = rng_.below(fronts_.size() + workers_.size());
  const Duration length = fault_length();
  const auto freeze = [&](auto& places, size_t i) {
    auto& place = places[i];
    if (!place.now || place.frozen) return;
    place.frozen = true;
    place.now->process().freeze();
    events_.after(length, [&place, life = place.incarnation] {
      if (!place.now || place.incarnation != life || !std::exchange(place.frozen, false)) return;
      place.now->process().thaw();
    });
  };
  if (index < fronts_.size()) {
    freeze(fronts_, index);
  } else {
    freeze(workers_, index - fronts_.size());
  }
}

void World::cut_link() {
  const std::string a = any_node(), b = any_node();
  const bool both = rng_.chance(0.5);
  const Duration length = fault_length();
  if (a == b) return;
  const auto block = [&](const std::string& from, const std::string& to) {
    log_.note("is cut off", from + " to " + to, both);
    network_.block(from, to);
    const auto entry = blocked_.emplace(from, to);
    events_.after(length, [this, entry, from, to] {
      if (healed_) return;
      blocked_.erase(entry);
      log_.note("is joined again", from + " to " + to);
      network_.unblock(from, to);
    });
  };
  block(a, b);
  if (both) block(b, a);
}

void World::slow_link() {
  const std::string a = any_node(), b = any_node();
  SimLink link = options_.network.link;
  link.latency += std::chrono::microseconds(rng_.between(1, 100000));
  link.jitter_max += std::chrono::microseconds(rng_.between(0, 50000));
  link.bytes_per_second /= static_cast<double>(rng_.between(1, 1000));
  const Duration length = fault_length();
  if (a == b) return;
  log_.note("is slow", a + " to " + b, static_cast<uint64_t>(link.latency.count()));
  network_.set_link(a, b, link);
  const auto entry = slowed_.emplace(a, b);
  events_.after(length, [this, entry, a, b] {
    if (healed_) return;
    slowed_.erase(entry);
    network_.set_link(a, b, options_.network.link);
  });
}

void World::disturb_device(bool fails) {
  const uint64_t index = rng_.below(workers_.size());
  const double factor = 1.0 + 20.0 * rng_.uniform();
  Place<SimWorker>& place = workers_[index];
  if (!place.now) return;
  if (fails) {
    log_.note("has its device fail", worker_node(index));
    place.device_failed = true;
    place.now->device().fail();
  } else {
    log_.note("has a slow device", worker_node(index), static_cast<uint64_t>(factor));
    place.now->device().slow_down(factor);
  }
}

void World::drain_one() {
  const uint64_t index = rng_.below(workers_.size());
  const Duration length = fault_length();
  Place<SimWorker>& place = workers_[index];
  if (!place.now || place.frozen) return;
  log_.note("drains", worker_node(index));
  place.now->drain();
  events_.after(length, [this, index, life = place.incarnation] {
    Place<SimWorker>& drained = workers_[index];
    if (healed_ || !drained.now || drained.incarnation != life || drained.frozen) return;
    drained.now->leave();
    stop_worker(index);
    start_worker(index);
  });
}

void World::heal() {
  log_.note("all is healed", "world");
  healed_ = true;
  for (const auto& [from, to] : std::exchange(blocked_, {})) network_.unblock(from, to);
  for (const auto& [from, to] : std::exchange(slowed_, {})) {
    network_.set_link(from, to, options_.network.link);
  }
  for (size_t i = 0; i < fronts_.size(); ++i) {
    if (!fronts_[i].now) start_front(i);
    if (std::exchange(fronts_[i].frozen, false)) fronts_[i].now->process().thaw();
  }
  for (size_t i = 0; i < workers_.size(); ++i) {
    Place<SimWorker>& place = workers_[i];
    const bool is_old = place.now && (place.device_failed || place.now->draining());
    if (is_old) stop_worker(i);
    if (!place.now) start_worker(i);
    if (std::exchange(place.frozen, false)) place.now->process().thaw();
    place.now->device().slow_down(1.0);
  }
}

}  // namespace troupe::sim
