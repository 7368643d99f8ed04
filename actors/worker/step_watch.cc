#include "actors/worker/step_watch.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"

namespace troupe {
namespace {

constexpr double kLatestWeight = 0.1;  // of the latest step in the learned means
// Fewer tokens than this say little about the cost of one.
constexpr uint32_t kTokensToLearnFrom = 32;

void learn(double& mean, double latest) {
  mean += (mean == 0.0 ? 1.0 : kLatestWeight) * (latest - mean);
}

}  // namespace

StepWatch::StepWatch(const Clock& clock) : clock_(clock), last_tick_(clock.now()) {}

void StepWatch::on_submitted(const StepPlan& plan) {
  TROUPE_ASSERT(!in_flight_, plan.number);
  in_flight_ = true;
  submitted_ = clock_.now();
  tokens_ = tokens_of(plan);
  slices_ = static_cast<uint32_t>(plan.slices.size());
}

void StepWatch::on_done(const StepResult& result) {
  in_flight_ = false;
  const double seconds = std::chrono::duration<double>(result.finished - result.started).count();
  if (tokens_ == slices_) {
    learn(seconds_per_step_, seconds);
  } else if (tokens_ >= kTokensToLearnFrom) {
    learn(seconds_per_token_, seconds / tokens_);
  }
}

void StepWatch::on_failed(Status status) {
  in_flight_ = false;
  failed_ = std::move(status);
}

void StepWatch::on_tick() {
  const TimePoint now = clock_.now();
  const Duration since_tick = now - std::exchange(last_tick_, now);
  if (since_tick > limits::kOwnPause) submitted_ += since_tick;
}

bool StepWatch::stalled() const {
  if (!failed_.ok()) return true;
  if (!in_flight_) return false;
  const double predicted = std::max(seconds_per_step_, tokens_ * seconds_per_token_);
  const auto limit = std::max<Duration>(
      limits::kStallFloor, std::chrono::duration_cast<Duration>(
                               std::chrono::duration<double>(predicted * limits::kStallFactor)));
  return age() > limit;
}

Duration StepWatch::age() const {
  return in_flight_ ? clock_.now() - submitted_ : Duration{0};
}

}  // namespace troupe
