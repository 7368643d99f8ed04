#include "engine/schedule/step_pace.h"

#include <algorithm>

#include "base/assert.h"
#include "engine/schedule/limits.h"

namespace troupe {
namespace {

constexpr double kGain = 0.25;  // of the newest step in the running average

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

uint32_t StepPace::prompt_tokens(uint32_t rows, const Queue& queue) const {
  TROUPE_ASSERT(rows <= most_, rows, most_);
  const uint32_t room = most_ - rows;
  if (wanted_ <= Duration::zero()) return room;
  const uint32_t times = rows == 0 && queue.prompts == 1 ? kTimesAlone : 1;
  double tokens =
      std::max<double>(kStepTokensLeast, static_cast<double>(queue.tokens) / kStepsOfQueue);
  if (token_seconds_ > 0.0)
    tokens = std::max(tokens, times * seconds(wanted_) / token_seconds_ - rows);
  return static_cast<uint32_t>(std::min<double>(tokens, room));
}

void StepPace::on_step(uint32_t tokens, Duration took) {
  // Small ones are as long as it takes to read the weights, whatever they compute.
  if (tokens < kStepTokensLeast || took <= Duration::zero()) return;
  const double now = seconds(took) / tokens;
  token_seconds_ = token_seconds_ > 0.0 ? token_seconds_ + kGain * (now - token_seconds_) : now;
}

}  // namespace troupe
