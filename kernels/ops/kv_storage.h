#pragma once
// How the keys and values of a block of tokens are stored, one run of bytes for the keys of each kv
// head and one for its values. Runs are whole cache lines.
//
//           kF16, kF32           kInt8
//   keys    [dim][token]         [dim / 2][token][dim % 2],        then scales [group][token]
//   values  [token][padded dim]  [token / 2][padded dim][token % 2], then scales [token]
//
// Two integers that a product is summed over stand side by side. Dims of padding hold zeros, but in
// keys of kF16 and kF32 nothing that anybody reads.

#include <cstdint>
#include <string_view>

namespace troupe {

// KV tokens stored together; equals kBlockTokens of base/ids.h.
inline constexpr uint32_t kKvBlockTokens = 16;

enum class KvType : uint8_t {
  kF16,   // binary16
  kInt8,  // integers in [-127, 127] times fp32 scales
  kF32,   // of the reference backend alone; kernels/ops has no operations for it
};
inline constexpr KvType kKvTypes[] = {KvType::kF16, KvType::kInt8, KvType::kF32};

[[nodiscard]] constexpr std::string_view to_string(KvType type) {
  return type == KvType::kF16 ? "f16" : type == KvType::kInt8 ? "int8" : "f32";
}

// Dims of a key that share a scale. A few dims of a model's keys may be far greater than all others
// (Qwen2's, by their biases): they shall not take the others' precision.
inline constexpr uint32_t kInt8KeyGroup = 32;

// Heads are padded to whole vectors where they are stored.
[[nodiscard]] constexpr uint32_t padded_head(uint32_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}
// Where integers stand among those of their run.
[[nodiscard]] constexpr uint32_t int8_key_place(uint32_t dim, uint32_t token) {
  return (dim / 2 * kKvBlockTokens + token) * 2 + dim % 2;
}
[[nodiscard]] constexpr uint32_t int8_value_place(uint32_t dim, uint32_t token, uint32_t padded) {
  return (token / 2 * padded + dim) * 2 + token % 2;
}
// Elements of one head's keys, or values, in one block.
[[nodiscard]] constexpr uint32_t kv_head_elements(uint32_t head_dim) {
  return kKvBlockTokens * padded_head(head_dim);
}
[[nodiscard]] constexpr uint32_t int8_key_groups(uint32_t head_dim) {
  return (head_dim + kInt8KeyGroup - 1) / kInt8KeyGroup;
}

// Bytes of the runs of one head.
[[nodiscard]] constexpr uint32_t kv_element_bytes(KvType type) {
  return type == KvType::kF16 ? 2 : type == KvType::kInt8 ? 1 : 4;
}
[[nodiscard]] constexpr uint32_t kv_key_bytes(KvType type, uint32_t head_dim) {
  const uint32_t scales = type == KvType::kInt8 ? int8_key_groups(head_dim) : 0;
  return kv_head_elements(head_dim) * kv_element_bytes(type) + scales * kKvBlockTokens * 4;
}
[[nodiscard]] constexpr uint32_t kv_value_bytes(KvType type, uint32_t head_dim) {
  const uint32_t scales = type == KvType::kInt8 ? 1 : 0;
  return kv_head_elements(head_dim) * kv_element_bytes(type) + scales * kKvBlockTokens * 4;
}
// Of one layer's block with so many kv heads.
[[nodiscard]] constexpr uint64_t kv_block_bytes(KvType type, uint32_t kv_heads, uint32_t head_dim) {
  return uint64_t{kv_heads} * (kv_key_bytes(type, head_dim) + kv_value_bytes(type, head_dim));
}

}  // namespace troupe
