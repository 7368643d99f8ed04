#include "engine/schedule/draft/draft_pace.h"

#include <algorithm>

#include "base/assert.h"

namespace troupe {

namespace {

constexpr double kAcceptanceGain = 0.2;   // of the newest guess in the running average
constexpr double kForget = 0.98;          // weight of a step once another has come
constexpr double kRowCostPrior = 0.2;     // of a step
constexpr double kRowCostMin = 0.01;      // noise must not make rows look free
constexpr double kRowVarianceMin = 0.05;  // below it there is no slope to be seen

}  // namespace

// The i-th guess is of use when it and those before it are right: acceptance^i of a step saved.
uint32_t DraftPace::next_length(double row_cost) {
  double useful = acceptance_;
  uint32_t length = 0;
  while (length < kDraftTokensMax && useful > row_cost) {
    ++length;
    useful *= acceptance_;
  }
  if (length > 0) {
    skipped_ = 0;
  } else if (++skipped_ >= kDraftProbeEvery) {
    skipped_ = 0;
    length = 1;
  }
  return length;
}

void DraftPace::on_result(uint32_t drafted, uint32_t accepted) {
  TROUPE_ASSERT(drafted > 0 && accepted <= drafted, drafted, accepted);
  // What follows the first wrong guess tells nothing.
  const uint32_t judged = std::min(accepted + 1, drafted);
  for (uint32_t i = 0; i < judged; ++i) {
    const double right = i < accepted ? 1.0 : 0.0;
    acceptance_ += kAcceptanceGain * (right - acceptance_);
  }
}

void RowCost::on_step(uint32_t rows, double seconds) {
  const auto x = static_cast<double>(rows);
  for (double* sum : {&weight_, &rows_, &seconds_, &rows_rows_, &rows_seconds_}) *sum *= kForget;
  weight_ += 1.0;
  rows_ += x;
  seconds_ += seconds;
  rows_rows_ += x * x;
  rows_seconds_ += x * seconds;
}

double RowCost::of(uint32_t rows) const {
  if (weight_ < 1.0) return kRowCostPrior;
  const double mean_rows = rows_ / weight_;
  const double mean_seconds = seconds_ / weight_;
  const double variance = rows_rows_ / weight_ - mean_rows * mean_rows;
  if (variance < kRowVarianceMin || mean_seconds <= 0.0) return kRowCostPrior;
  const double per_row = (rows_seconds_ / weight_ - mean_rows * mean_seconds) / variance;
  const double step = mean_seconds + per_row * (static_cast<double>(rows) - mean_rows);
  if (step <= 0.0) return kRowCostPrior;
  return std::clamp(per_row / step, kRowCostMin, 1.0);
}

}  // namespace troupe
