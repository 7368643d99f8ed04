#pragma once
// The tensor types of a GGUF file that Troupe reads, with their block geometry.
// Source of numbers and layouts: the GGUF specification and ggml's type table.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace troupe {

// The values are those that the file stores.
enum class WeightType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

struct WeightTypeTraits {
  WeightType type;
  std::string_view name;
  uint32_t block_weights;  // weights in one block; a row holds a whole number of blocks
  uint32_t block_bytes;    // bytes of one block in the file
};

inline constexpr WeightTypeTraits kWeightTypes[] = {
    {WeightType::kF32, "F32", 1, 4},       {WeightType::kF16, "F16", 1, 2},
    {WeightType::kQ4_0, "Q4_0", 32, 18},   {WeightType::kQ4_1, "Q4_1", 32, 20},
    {WeightType::kQ5_0, "Q5_0", 32, 22},   {WeightType::kQ5_1, "Q5_1", 32, 24},
    {WeightType::kQ8_0, "Q8_0", 32, 34},   {WeightType::kQ4_K, "Q4_K", 256, 144},
    {WeightType::kQ5_K, "Q5_K", 256, 176}, {WeightType::kQ6_K, "Q6_K", 256, 210},
    {WeightType::kBF16, "BF16", 1, 2},
};

// Null for a type number that Troupe does not read.
[[nodiscard]] constexpr const WeightTypeTraits* find_weight_type(uint32_t number) {
  for (const WeightTypeTraits& traits : kWeightTypes)
    if (static_cast<uint32_t>(traits.type) == number) return &traits;
  return nullptr;
}

[[nodiscard]] constexpr const WeightTypeTraits& traits_of(WeightType type) {
  return *find_weight_type(static_cast<uint32_t>(type));
}

}  // namespace troupe
