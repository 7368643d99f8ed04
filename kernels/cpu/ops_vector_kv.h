#pragma once
// Storing keys and values, over vectors of sixteen floats.
// `V` is a vector of sixteen floats, see ops_vector.h.

#include <cstddef>
#include <cstdint>

#include "kernels/ops/ops.h"

namespace troupe::ops_vector {

template <class V>
inline V saturated(V x) {
  return V::max(V::all(-65504.0F), V::min(V::all(65504.0F), x));  // a NaN stays one
}

inline uint32_t smaller(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

template <class V>
void store_key_f16(const float* key, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<uint16_t*>(run) + token;
  for (uint32_t d = 0; d < head_dim; d += 16) {
    const uint32_t dims = smaller(head_dim - d, 16);
    alignas(64) uint16_t halves[16];
    saturated(V::load_first(key + d, dims)).store_as(halves);
    for (uint32_t i = 0; i < dims; ++i) out[size_t{d + i} * kKvBlockTokens] = halves[i];
  }
}

template <class V>
void store_value_f16(const float* value, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<uint16_t*>(run) + size_t{token} * padded_head(head_dim);
  for (uint32_t d = 0; d < head_dim; d += 16)
    saturated(V::load_first(value + d, smaller(head_dim - d, 16))).store_as(out + d);
}

// Numbers as integers of at most `levels` times a step: steps() of kernels/ops/ops.h.
template <class V>
struct Steps {
  float step = 0.0F;
  float factor = 0.0F;
  bool is_zero = true;

  Steps(const float* x, uint32_t count, float levels) {
    V peaks = V::all(0.0F);
    V poison = V::all(0.0F);
    for (uint32_t i = 0; i < count; i += 16) {
      const V v = saturated(V::load_first(x + i, smaller(count - i, 16)));
      peaks = V::max(V::max(v, v.negated()), peaks);
      poison = V::fma(v, V::all(0.0F), poison);
    }
    set(peaks, poison, levels);
  }
  // Of numbers whose greatest magnitude is in `peaks`; `poison` has a NaN where one of them is.
  Steps(V peaks, V poison, float levels) { set(peaks, poison, levels); }

  void set(V peaks, V poison, float levels) {
    const float peak = peaks.max_lane();
    const float sum = poison.sum_tree();
    if (sum != sum) {
      step = sum;
    } else if (peak >= kStepsPeakMin) {
      step = peak / levels;
      factor = levels / peak;
      is_zero = false;
    }
  }
  // Of up to sixteen of the numbers, to be rounded; 0 behind them.
  [[nodiscard]] V integers(const float* x, uint32_t count) const {
    if (is_zero) return V::all(0.0F);
    return saturated(V::load_first(x, count)) * V::all(factor);
  }
};

template <class V>
void store_key_int8(const float* key, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<int8_t*>(run);
  float* scales = reinterpret_cast<float*>(run + kv_head_elements(head_dim)) + token;
  for (uint32_t begin = 0; begin < head_dim; begin += kInt8KeyGroup) {
    const uint32_t end = smaller(head_dim, begin + kInt8KeyGroup);
    const Steps<V> steps(key + begin, end - begin, kInt8Levels);
    scales[begin / kInt8KeyGroup * kKvBlockTokens] = steps.step;
    for (uint32_t d = begin; d < end; d += 16) {
      alignas(16) int8_t integers[16];
      steps.integers(key + d, smaller(end - d, 16)).store_as(integers);
      for (uint32_t i = 0; i < 16; i += 2)
        __builtin_memcpy(out + int8_key_place(d + i, token), integers + i, 2);
    }
  }
}

template <class V>
void store_value_int8(const float* value, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<int8_t*>(run);
  const Steps<V> steps(value, head_dim, kInt8Levels);
  reinterpret_cast<float*>(run + kv_head_elements(head_dim))[token] = steps.step;
  for (uint32_t d = 0; d < head_dim; d += 16) {
    alignas(16) int8_t integers[16];
    steps.integers(value + d, smaller(head_dim - d, 16)).store_as(integers);
    for (uint32_t i = 0; i < 16; ++i)
      out[int8_value_place(d + i, token, padded_head(head_dim))] = integers[i];
  }
}

}  // namespace troupe::ops_vector
