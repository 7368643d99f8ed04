#pragma once
// Random inputs and bit comparison for the operations' tests.

#include <bit>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/ops/ops.h"

namespace troupe::test {

class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  // Uniform in [-magnitude, magnitude).
  std::vector<float> floats(size_t count, float magnitude) {
    std::uniform_real_distribution<float> uniform(-magnitude, magnitude);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(engine_);
    return values;
  }
  uint32_t below(uint32_t limit) { return static_cast<uint32_t>(engine_() % limit); }

 private:
  std::mt19937 engine_;
};

// The vector paths that this machine can run; kScalar is what they are compared with.
inline std::vector<CpuIsa> vector_isas() {
  std::vector<CpuIsa> isas;
  for (CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512})
    if (supports(isa)) isas.push_back(isa);
  return isas;
}

// Same bits, also where the values are NaN or zeros of both signs.
inline void check_same_bits(const std::vector<float>& a, const std::vector<float>& b,
                            const std::string& what) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<uint32_t>(a[i]) == std::bit_cast<uint32_t>(b[i])) continue;
    BOOST_ERROR(what + " differs at " + std::to_string(i) + ": " + std::to_string(a[i]) + " and " +
                std::to_string(b[i]));
    return;
  }
}

}  // namespace troupe::test
