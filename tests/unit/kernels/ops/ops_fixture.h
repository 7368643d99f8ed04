#pragma once
// Random inputs and bit comparison for the operations' tests.

#include <algorithm>
#include <bit>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/ops/ops.h"
#include "kernels/reference/float16.h"

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
  for (CpuIsa isa : {CpuIsa::kAvx2, CpuIsa::kAvx512, CpuIsa::kAvx512Vnni})
    if (supports(isa)) isas.push_back(isa);
  return isas;
}

// The greatest magnitude among `count` numbers.
inline double peak_of(const float* x, uint32_t count) {
  double peak = 0.0;
  for (uint32_t i = 0; i < count; ++i) peak = std::max(peak, std::abs(double{x[i]}));
  return peak;
}

// What a run of keys, or values, holds of a token at a dim.
template <class T>
T read_at(const std::byte* run, size_t index) {
  T value;
  std::memcpy(&value, run + index * sizeof(T), sizeof(T));
  return value;
}
inline float scale_at(const std::byte* run, uint32_t head_dim, size_t index) {
  return read_at<float>(run + kv_head_elements(head_dim), index);
}
inline float stored_key(KvType type, const std::byte* run, uint32_t head_dim, uint32_t token,
                        uint32_t dim) {
  if (type == KvType::kF16) return f16_to_f32(read_at<uint16_t>(run, dim * kKvBlockTokens + token));
  return scale_at(run, head_dim, dim / kInt8KeyGroup * kKvBlockTokens + token) *
         static_cast<float>(read_at<int8_t>(run, int8_key_place(dim, token)));
}
inline float stored_value(KvType type, const std::byte* run, uint32_t head_dim, uint32_t token,
                          uint32_t dim) {
  const uint32_t padded = padded_head(head_dim);
  if (type == KvType::kF16) return f16_to_f32(read_at<uint16_t>(run, size_t{token} * padded + dim));
  return scale_at(run, head_dim, token) *
         static_cast<float>(read_at<int8_t>(run, int8_value_place(dim, token, padded)));
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
