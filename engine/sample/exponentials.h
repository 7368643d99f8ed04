#pragma once
// Exponentials of whole rows of logits, in double precision. Each is what exp_nonpositive() of
// exact_math.h gives, whatever instruction set computes it; the fastest one that the machine has is
// chosen at run time.

#include <span>

namespace troupe {

// weights[i] = e^((logits[i] - peak) / temperature), 0 where a logit is -infinity. No logit is
// above `peak`, which is finite; temperature > 0; both spans have one length.
void weigh(std::span<const float> logits, float peak, float temperature, std::span<double> weights);

// The sum of e^(logits[i] - peak): eight running sums, of every eighth term each, then pairs of
// them.
[[nodiscard]] double sum_exponentials(std::span<const float> logits, float peak);

}  // namespace troupe
