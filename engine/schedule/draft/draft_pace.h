#pragma once
// How many tokens to guess: as many as pay. A guessed token costs the time of one more row in the
// step, and saves a step for its sequence if it and all guesses before it are right.

#include <cstdint>

namespace troupe {

// Most tokens guessed at once.
inline constexpr uint32_t kDraftTokensMax = 8;
// When guessing does not pay, one guess in this many is made all the same, to notice when it does.
inline constexpr uint32_t kDraftProbeEvery = 16;

// The share of one sequence's guesses that were right, lately.
class DraftPace final {
 public:
  // How many tokens to guess now, for a step in which one more row costs `row_cost` of the time
  // that the step takes without guesses.
  [[nodiscard]] uint32_t next_length(double row_cost);
  // Of `drafted` tokens (at least 1) the first `accepted` were right.
  void on_result(uint32_t drafted, uint32_t accepted);

  [[nodiscard]] double acceptance() const { return acceptance_; }

 private:
  double acceptance_ = 0.5;  // of a guessed token whose predecessors were right
  uint32_t skipped_ = 0;
};

// What one more row costs, learned from steps that only decode: seconds = fixed + rows * per_row,
// by least squares that forget.
class RowCost final {
 public:
  void on_step(uint32_t rows, double seconds);
  // As a share of a step with this many rows; a prior while only one number of rows has been seen.
  [[nodiscard]] double of(uint32_t rows) const;

 private:
  // Weighted sums over past steps.
  double weight_ = 0.0, rows_ = 0.0, seconds_ = 0.0, rows_rows_ = 0.0, rows_seconds_ = 0.0;
};

}  // namespace troupe
