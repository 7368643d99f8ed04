#pragma once
// Operations on rows over vectors of sixteen floats, and what attention shares with them.
// `V` is a vector of sixteen floats, see ops_vector.h.

#include <cstddef>
#include <cstdint>

#include "kernels/ops/exp_constants.h"
#include "kernels/ops/ops.h"

namespace troupe::ops_vector {

template <class V>
inline V exp16(V x) {
  using namespace exp_constants;
  x = V::max(V::all(kMin), V::min(V::all(kMax), x));  // a NaN stays one
  const V shifted = V::fma(x, V::all(kLog2E), V::all(kRounder));
  const V n = shifted - V::all(kRounder);
  V r = V::fma(n, V::all(-kLn2High), x);
  r = V::fma(n, V::all(-kLn2Low), r);
  V p = V::all(kTaylor[0]);
#pragma GCC unroll 8
  for (int i = 1; i < 8; ++i) p = V::fma(p, r, V::all(kTaylor[i]));
  return p * V::power_of_two(shifted);
}

template <class V>
inline V attention_exp16(V x) {
  return V::zero_where_less(x, V::all(exp_constants::kAttentionCut), exp16(x));
}

template <class V>
void rms_norm(const float* x, const float* weight, float epsilon, uint32_t width, float* out) {
  V sum = V::all(0.0F);
  const uint32_t whole = width / 16 * 16;
  const uint32_t rest = width - whole;
  for (uint32_t i = 0; i < whole; i += 16) {
    const V v = V::load(x + i);
    sum = V::fma(v, v, sum);
  }
  if (rest != 0) {
    const V v = V::load_first(x + whole, rest);  // the other lanes add +0 and so keep their value
    sum = V::fma(v, v, sum);
  }
  const float mean = sum.sum_tree() / static_cast<float>(width);
  const V r = V::all(1.0F / V::root(mean + epsilon));
  for (uint32_t i = 0; i < whole; i += 16)
    ((V::load(x + i) * r) * V::load(weight + i)).store(out + i);
  if (rest != 0)
    ((V::load_first(x + whole, rest) * r) * V::load_first(weight + whole, rest))
        .store_first(out + whole, rest);
}

template <class V>
void add(float* x, const float* y, size_t count) {
  const size_t whole = count / 16 * 16;
  const auto rest = static_cast<uint32_t>(count - whole);
  for (size_t i = 0; i < whole; i += 16) (V::load(x + i) + V::load(y + i)).store(x + i);
  if (rest != 0)
    (V::load_first(x + whole, rest) + V::load_first(y + whole, rest)).store_first(x + whole, rest);
}

template <class V>
void scale(float* x, float factor, size_t count) {
  const size_t whole = count / 16 * 16;
  const auto rest = static_cast<uint32_t>(count - whole);
  const V all = V::all(factor);
  for (size_t i = 0; i < whole; i += 16) (V::load(x + i) * all).store(x + i);
  if (rest != 0) (V::load_first(x + whole, rest) * all).store_first(x + whole, rest);
}

template <class V>
struct Swiglu {
  static V apply(V gate, V up) { return gate / (V::all(1.0F) + exp16(gate.negated())) * up; }
};

template <class V>
struct Geglu {
  static V apply(V gate, V up) {
    using namespace exp_constants;
    const V z = gate * V::fma(gate * gate, V::all(kGeluCubic), V::all(kGeluLinear));
    return gate / (V::all(1.0F) + exp16(z.negated())) * up;
  }
};

template <class V, class Gate>
void gated(const float* gate, const float* up, size_t count, float* out) {
  const size_t whole = count / 16 * 16;
  const auto rest = static_cast<uint32_t>(count - whole);
  for (size_t i = 0; i < whole; i += 16)
    Gate::apply(V::load(gate + i), V::load(up + i)).store(out + i);
  if (rest != 0)
    Gate::apply(V::load_first(gate + whole, rest), V::load_first(up + whole, rest))
        .store_first(out + whole, rest);
}

template <class V>
void swiglu(const float* gate, const float* up, size_t count, float* out) {
  gated<V, Swiglu<V>>(gate, up, count, out);
}

template <class V>
void geglu(const float* gate, const float* up, size_t count, float* out) {
  gated<V, Geglu<V>>(gate, up, count, out);
}

template <class V>
void rotate(float* x, const float* cosines, const float* sines, uint32_t rotated_dim) {
  const uint32_t whole = rotated_dim / 16 * 16;
  const uint32_t rest = rotated_dim - whole;
  for (uint32_t i = 0; i < whole; i += 16)
    V::rotate(V::load(x + i), V::load(cosines + i), V::load(sines + i)).store(x + i);
  if (rest != 0)
    V::rotate(V::load_first(x + whole, rest), V::load_first(cosines + whole, rest),
              V::load_first(sines + whole, rest))
        .store_first(x + whole, rest);
}

template <class V>
void rotate_halves(float* x, const float* cosines, const float* sines, uint32_t rotated_dim) {
  const uint32_t half = rotated_dim / 2;
  for (uint32_t i = 0; i < half; i += 16) {
    const uint32_t lanes = half - i < 16 ? half - i : 16;
    const V a = V::load_first(x + i, lanes);
    const V b = V::load_first(x + half + i, lanes);
    const V c = V::load_first(cosines + i, lanes);
    const V s = V::load_first(sines + i, lanes);
    V::fma(a, c, (b * s).negated()).store_first(x + i, lanes);
    V::fma(b, c, a * s).store_first(x + half + i, lanes);
  }
}

// Calls step.template run<Q>(query) over all queries, Q at most V::kRows.
template <class V, int Q, class Step>
inline void over_queries(uint32_t query, uint32_t queries, const Step& step) {
  for (; query + Q <= queries; query += Q) step.template run<Q>(query);
  if constexpr (Q > 1) {
    if (query < queries) over_queries<V, Q - 1>(query, queries, step);
  }
}

template <class V>
struct LinearF32Step {
  const LinearF32& layer;
  template <int Q>
  void run(uint32_t row) const {
    const float* x = layer.x + row * layer.x_stride;
    V sums[Q];
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q) sums[q] = V::all(0.0F);
    for (uint32_t k = 0; k < layer.inputs; ++k) {
      const V w = V::load(layer.weights + size_t{k} * 16);
#pragma GCC unroll 8
      for (int q = 0; q < Q; ++q) sums[q] = V::fma(V::all(x[q * layer.x_stride + k]), w, sums[q]);
    }
#pragma GCC unroll 8
    for (int q = 0; q < Q; ++q)
      sums[q].store_first(layer.out + (row + q) * layer.out_stride, layer.outputs);
  }
};

template <class V>
void linear_f32(const LinearF32& layer) {
  over_queries<V, V::kRows>(0, layer.rows, LinearF32Step<V>{layer});
}

}  // namespace troupe::ops_vector
