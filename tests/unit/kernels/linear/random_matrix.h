#pragma once
// Weight matrices in the file's formats, filled from a seed.

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/reference/float16.h"
#include "kernels/weight_type.h"

namespace troupe {

inline constexpr WeightType kAllWeightTypes[] = {
    WeightType::kF32,  WeightType::kF16,  WeightType::kBF16, WeightType::kQ4_0,
    WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1, WeightType::kQ8_0,
    WeightType::kQ4_K, WeightType::kQ5_K, WeightType::kQ6_K,
};

struct RandomMatrix {
  WeightType type;
  uint32_t rows, inputs;
  std::vector<uint8_t> bytes;
};

inline size_t row_bytes(WeightType type, uint32_t inputs) {
  return size_t{inputs} / traits_of(type).block_weights * traits_of(type).block_bytes;
}

// Where a block keeps its binary16 scales.
inline std::vector<size_t> half_places(WeightType type) {
  switch (type) {
    case WeightType::kQ4_1:
    case WeightType::kQ5_1:
    case WeightType::kQ4_K:
    case WeightType::kQ5_K:
      return {0, 2};
    case WeightType::kQ6_K:
      return {208};
    case WeightType::kQ4_0:
    case WeightType::kQ5_0:
    case WeightType::kQ8_0:
      return {0};
    default:
      return {};
  }
}

inline RandomMatrix random_matrix(WeightType type, uint32_t rows, uint32_t inputs, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.05F);
  RandomMatrix m{type, rows, inputs, std::vector<uint8_t>(rows * row_bytes(type, inputs))};
  for (uint8_t& b : m.bytes) b = static_cast<uint8_t>(random());
  const uint32_t block = traits_of(type).block_bytes;
  for (size_t at = 0; at < m.bytes.size(); at += block) {
    const float value = normal(random);
    const uint16_t half = f32_to_f16(value);
    const uint16_t brain = f32_to_bf16(value);
    if (type == WeightType::kF32) std::memcpy(&m.bytes[at], &value, 4);
    if (type == WeightType::kF16) std::memcpy(&m.bytes[at], &half, 2);
    if (type == WeightType::kBF16) std::memcpy(&m.bytes[at], &brain, 2);
    for (const size_t place : half_places(type)) {
      const uint16_t scale = f32_to_f16(normal(random));
      std::memcpy(&m.bytes[at + place], &scale, 2);
    }
  }
  return m;
}

inline std::vector<float> random_activations(uint32_t rows, uint32_t inputs, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> x(size_t{rows} * inputs);
  for (float& v : x) v = normal(random);
  return x;
}

}  // namespace troupe
