#include "loadgen/random.h"

#include <cmath>

#include "base/assert.h"
#include "base/philox.h"

namespace troupe::loadgen {

double Random::uniform() {
  return philox_uniform(seed_, drawn_++, stream_);
}

uint64_t Random::below(uint64_t bound) {
  TROUPE_ASSERT(bound > 0);
  // The bias of a plain remainder is below 2^-32 for every bound that occurs here.
  return philox_u64(seed_, drawn_++, stream_) % bound;
}

uint64_t Random::between(uint64_t least, uint64_t most) {
  TROUPE_ASSERT(least <= most, least, most);
  return least + below(most - least + 1);
}

double Random::normal() {
  // Box and Muller; 1 - u is never 0.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

double Random::gamma(double shape, double scale) {
  TROUPE_ASSERT(shape > 0.0 && scale > 0.0);
  if (shape < 1.0) {
    const double power = std::pow(1.0 - uniform(), 1.0 / shape);
    return gamma(shape + 1.0, scale) * power;
  }
  const double d = shape - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  while (true) {  // accepts more than 95 % of the draws
    const double x = normal(), v = std::pow(1.0 + c * x, 3.0);
    if (v <= 0.0) continue;
    if (std::log(1.0 - uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v * scale;
  }
}

}  // namespace troupe::loadgen
