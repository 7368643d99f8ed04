#pragma once
// All operations of a decoder but its linear layers, on the CPU. Each has ONE arithmetic
// definition, written down here and in docs/adr/0003-arithmetic-of-the-other-operations.md: every
// table of functions below (scalar, AVX2, AVX-512) gives the same bits for the same input, and no
// result depends on how rows, heads or segments are divided among calls and threads.
//
// The words of the definitions:
//   fma(a, b, c)   a * b + c, rounded once. Everything else rounds after each operation.
//   lanes16(f)     sixteen partial sums, lane l takes the elements l, l + 16, l + 32, ... in order,
//                  starting from +0; then the tree: lane l += lane l + 8, then + 4, + 2, + 1.
//   exp(x)         exp_reference() of kernels/reference/ops_reference.h, our own polynomial.
//
// NaN in gives NaN out, of unspecified bits: such a sequence fails at the sampler, and no other one
// is touched by it.
//
// Kernels take raw pointers and sizes; they allocate nothing, keep no state, check nothing but by
// TROUPE_DCHECK, and are thread-safe. Pointers need no alignment beyond their type's.

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa.h"
#include "kernels/ops/kv_storage.h"
#include "kernels/ops/rope_pairs.h"

namespace troupe {

// Positions of one segment of attention. A segment begins at a multiple of it, whoever computes it.
inline constexpr uint32_t kSegmentTokens = 256;
// Query rows x heads that one attention_segment() call may hold.
inline constexpr uint32_t kAttentionQueriesMax = 64;

// What attention knows of one query in one or more segments, as floats: [0] the greatest score,
// [1] the sum of exponentials (0: no token seen), [16 ...] the weighted sum of values.
[[nodiscard]] constexpr uint32_t partial_floats(uint32_t head_dim) {
  return 16 + padded_head(head_dim);
}
// Floats of scratch memory for attention_segment().
[[nodiscard]] constexpr size_t attention_scratch_floats(uint32_t queries, uint32_t head_dim) {
  return size_t{queries} * (kSegmentTokens + padded_head(head_dim));
}

// Consecutive rows of one sequence, the query heads that share one kv head, one segment.
struct AttentionTile {
  const float* query = nullptr;  // (row r, head g) at query + r * query_stride + g * head_dim
  size_t query_stride = 0;       // floats
  uint32_t rows = 0;
  uint32_t group = 0;  // query heads; rows * group <= kAttentionQueriesMax
  uint32_t head_dim = 0;
  uint32_t position = 0;  // of row 0; row r sees the tokens [0, position + r] ...
  uint32_t window = 0;    // ... or, unless it is 0, the last `window` of them
  uint32_t segment = 0;   // here: those of them in [256 s, 256 s + 256)
  float scale = 0.0F;     // of the scores
  // Block b of the sequence holds the tokens [16 b, 16 b + 16); the run of its keys (values) of
  // this head begins at keys + blocks[b] * block_stride. Blocks that no row sees a token of are not
  // read, nor their entries here.
  const uint32_t* blocks = nullptr;
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  size_t block_stride = 0;  // bytes
};

// What depends on how KV is stored.
struct KvOps {
  // Write one token's key (value) into a block's run of one kv head; `token` in [0, 16). Elements
  // are saturated at +-65504, whatever the type. Padding is written as zero, but not that of keys
  // of kF16.
  //   kF16   rounded to nearest even; NaN stays NaN.
  //   kInt8  k8, scale = steps(x, 127) of each group of kInt8KeyGroup dims, of all dims of a value.
  void (*store_key)(const float* key, uint32_t head_dim, uint32_t token, std::byte* run);
  void (*store_value)(const float* value, uint32_t head_dim, uint32_t token, std::byte* run);

  // Writes one partial per query, (row r, head g) at partials + (r * group + g) * partial_floats:
  //   score(t)  = fma chain over dims in order from +0 of (q[d] * scale) and k[t][d]
  //   greatest  = max over the row's tokens t of the segment
  //   p(t)      = score(t) - greatest < -40 ? 0 : exp(score(t) - greatest)
  //   sum       = lanes16(p), by position
  //   weighted[d] = fma chain over t in order from +0 of p(t) and v[t][d]
  // kInt8 has exact sums of integers, and of them
  //   q16, query step = steps(q * scale, 32767)
  //   score(t)  = (fma chain over groups in order from +0 of the group's scale at t and
  //                sum over its dims of q16[d] * k8[t][d]) * query step
  //   w16, weight step = steps(p(t) * scale at t, 32767) over the row's tokens of the segment
  //   weighted[d] = (sum over t of w16(t) * v8[t][d]) * weight step
  // where sums become floats by rounding to nearest even. None exceeds 31 bits: the longest has
  // 256 products of 32767 * 127.
  // A row that sees no token of the segment gets sum = 0.
  void (*attention_segment)(const AttentionTile& tile, float* partials, float* scratch);
};

// steps(x, levels), for numbers saturated at +-65504: with m = max |x[i]|, the step m / levels and
// the integers x[i] * (levels / m), rounded to the nearest one, a tie to the even one. m below
// kStepsPeakMin: step and integers are 0. A NaN among them: the step is NaN, the integers are 0.
inline constexpr float kInt8Levels = 127.0F;
inline constexpr float kInt16Levels = 32767.0F;
inline constexpr float kStepsPeakMin = 0x1p-64F;  // levels / m stays finite

struct LinearF32 {
  const float* weights = nullptr;
  uint32_t inputs = 0;
  uint32_t outputs = 0;  // 1 to 16: how many of the sixteen are written
  uint32_t rows = 0;
  const float* x = nullptr;  // row m at x + m * x_stride
  size_t x_stride = 0;
  float* out = nullptr;
  size_t out_stride = 0;
};

struct Ops {
  // m = lanes16(fma(x, x, .)) / width; r = 1 / sqrt(m + epsilon); out[i] = (x[i] * r) * weight[i].
  void (*rms_norm)(const float* x, const float* weight, float epsilon, uint32_t width, float* out);

  // x[i] = x[i] + y[i].
  void (*add)(float* x, const float* y, size_t count);

  // x[i] = x[i] * factor.
  void (*scale)(float* x, float factor, size_t count);

  // e = exp(-gate); out = (gate / (1 + e)) * up. out may be gate or up.
  void (*swiglu)(const float* gate, const float* up, size_t count, float* out);

  // With the tanh form of gelu, x (1 + tanh(z / 2)) / 2 = x / (1 + exp(-z)):
  //   z = gate * fma(gate * gate, kGeluCubic, kGeluLinear); e = exp(-z);
  //   out = (gate / (1 + e)) * up. out may be gate or up.
  void (*geglu)(const float* gate, const float* up, size_t count, float* out);

  // The pairs (a, b) = (x[2i], x[2i+1]) of one head: a' = fma(a, c, -(b * s)),
  // b' = fma(b, c, a * s), where c, s = cosines[2i], sines[2i] (each stored twice: [2i] and
  // [2i+1]).
  void (*rotate)(float* x, const float* cosines, const float* sines, uint32_t rotated_dim);

  // The same of the pairs (x[i], x[i + h]) with cosines[i], sines[i], where h = rotated_dim / 2.
  void (*rotate_halves)(float* x, const float* cosines, const float* sines, uint32_t rotated_dim);

  KvOps kv_f16;
  KvOps kv_int8;
  // `type` is one of the two.
  [[nodiscard]] const KvOps& kv(KvType type) const {
    return type == KvType::kInt8 ? kv_int8 : kv_f16;
  }

  // Adds the partial of the next segment to that of all earlier ones. With M = max of both
  // greatest, a = exp(into.greatest - M), b = exp(next.greatest - M), both with the cut at -40:
  //   sum = fma(next.sum, b, into.sum * a); weighted[d] = fma(next[d], b, into[d] * a).
  // A partial without tokens leaves (or gives way to) the other unchanged.
  void (*attention_merge)(float* into, const float* next, uint32_t head_dim);

  // out[d] = weighted[d] * (1 / sum).
  void (*attention_finish)(const float* partial, uint32_t head_dim, float* out);

  // Linear layers in plain fp32, sixteen outputs at a time, `weights` as [input][16]:
  // out[m][l] = fma chain over inputs k in order from +0 of x[m][k] and weights[k][l], l < outputs.
  void (*linear_f32)(const LinearF32& layer);
};

// The fastest table that machines of this kind run; all give the same bits.
[[nodiscard]] const Ops& ops_for(CpuIsa isa);

// Angles of rotary embedding, in double with our own sine and cosine, so that no libm decides them.
// frequencies[i] = base^(-2i / rotated_dim) * linear_scale / factors[i]; factors may be null.
void rope_frequencies(double base, double linear_scale, const float* factors, uint32_t rotated_dim,
                      double* frequencies);
// Of pair i cos(position * frequencies[i]) into cosines where both elements of the pair stand in a
// head, sines likewise; rotated_dim floats each.
void rope_angles(uint32_t position, const double* frequencies, uint32_t rotated_dim,
                 RopePairs pairs, float* cosines, float* sines);

}  // namespace troupe
