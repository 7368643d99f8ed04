#include "kernels/reference/ops_reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/ops/exp_constants.h"
#include "kernels/reference/float16.h"

namespace troupe {

float exp_reference(float x) {
  using namespace exp_constants;
  x = x > kMax ? kMax : x;
  x = x < kMin ? kMin : x;
  const float shifted = std::fma(x, kLog2E, kRounder);
  const float n = shifted - kRounder;
  float r = std::fma(n, -kLn2High, x);
  r = std::fma(n, -kLn2Low, r);
  float p = kTaylor[0];
  for (int i = 1; i < 8; ++i) p = std::fma(p, r, kTaylor[i]);
  // The low bits of `shifted` are those of n.
  return p * std::bit_cast<float>((std::bit_cast<uint32_t>(shifted) + 127U) << 23U);
}

namespace {

float attention_exp(float x) {
  return x < exp_constants::kAttentionCut ? 0.0F : exp_reference(x);
}

float sum_tree(float (&lanes)[16]) {
  for (int width = 8; width >= 1; width /= 2)
    for (int l = 0; l < width; ++l) lanes[l] += lanes[l + width];
  return lanes[0];
}

void rms_norm(const float* x, const float* weight, float epsilon, uint32_t width, float* out) {
  float lanes[16] = {};
  for (uint32_t i = 0; i < width; ++i) lanes[i % 16] = std::fma(x[i], x[i], lanes[i % 16]);
  const float mean = sum_tree(lanes) / static_cast<float>(width);
  const float r = 1.0F / std::sqrt(mean + epsilon);
  for (uint32_t i = 0; i < width; ++i) out[i] = (x[i] * r) * weight[i];
}

void add(float* x, const float* y, size_t count) {
  for (size_t i = 0; i < count; ++i) x[i] += y[i];
}

void scale(float* x, float factor, size_t count) {
  for (size_t i = 0; i < count; ++i) x[i] *= factor;
}

void swiglu(const float* gate, const float* up, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = (gate[i] / (1.0F + exp_reference(-gate[i]))) * up[i];
}

void geglu(const float* gate, const float* up, size_t count, float* out) {
  using namespace exp_constants;
  for (size_t i = 0; i < count; ++i) {
    const float z = gate[i] * std::fma(gate[i] * gate[i], kGeluCubic, kGeluLinear);
    out[i] = (gate[i] / (1.0F + exp_reference(-z))) * up[i];
  }
}

void rotate(float* x, const float* cosines, const float* sines, uint32_t rotated_dim) {
  for (uint32_t i = 0; i < rotated_dim; i += 2) {
    const float a = x[i];
    const float b = x[i + 1];
    x[i] = std::fma(a, cosines[i], -(b * sines[i]));
    x[i + 1] = std::fma(b, cosines[i], a * sines[i]);
  }
}

void rotate_halves(float* x, const float* cosines, const float* sines, uint32_t rotated_dim) {
  const uint32_t half = rotated_dim / 2;
  for (uint32_t i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = std::fma(a, cosines[i], -(b * sines[i]));
    x[i + half] = std::fma(b, cosines[i], a * sines[i]);
  }
}

float saturated(float x) {
  x = x > 65504.0F ? 65504.0F : x;
  return x < -65504.0F ? -65504.0F : x;
}

// Behind the integers of a run.
const float* scales(const std::byte* run, uint32_t head_dim) {
  return reinterpret_cast<const float*>(run + kv_head_elements(head_dim));
}
float* scales(std::byte* run, uint32_t head_dim) {
  return reinterpret_cast<float*>(run + kv_head_elements(head_dim));
}

void store_key_f16(const float* key, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<uint16_t*>(run) + token;
  for (uint32_t d = 0; d < head_dim; ++d) out[d * kKvBlockTokens] = f32_to_f16(saturated(key[d]));
}

void store_value_f16(const float* value, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<uint16_t*>(run) + size_t{token} * padded_head(head_dim);
  for (uint32_t d = 0; d < head_dim; ++d) out[d] = f32_to_f16(saturated(value[d]));
  for (uint32_t d = head_dim; d < padded_head(head_dim); ++d) out[d] = 0;
}

// steps(x, levels) of kernels/ops/ops.h.
struct Steps {
  float step = 0.0F, factor = 0.0F;

  Steps(const float* x, uint32_t count, float levels) {
    float peak = 0.0F;
    for (uint32_t i = 0; i < count; ++i) {
      if (std::isnan(x[i])) step = std::numeric_limits<float>::quiet_NaN();
      peak = std::max(peak, std::abs(saturated(x[i])));
    }
    if (std::isnan(step) || peak < kStepsPeakMin) return;
    step = peak / levels;
    factor = levels / peak;
  }
  // As a float, which holds it exactly.
  [[nodiscard]] float integer(float x) const {
    if (factor == 0.0F) return 0.0F;
    // Adding and subtracting it rounds to the nearest integer, a tie to the even one.
    constexpr float kRounder = 0x1.8p23F;
    return (saturated(x) * factor + kRounder) - kRounder;
  }
};

void store_key_int8(const float* key, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<int8_t*>(run);
  for (uint32_t begin = 0; begin < head_dim; begin += kInt8KeyGroup) {
    const uint32_t end = std::min(head_dim, begin + kInt8KeyGroup);
    const Steps steps(key + begin, end - begin, kInt8Levels);
    scales(run, head_dim)[begin / kInt8KeyGroup * kKvBlockTokens + token] = steps.step;
    for (uint32_t d = begin; d < end; ++d)
      out[int8_key_place(d, token)] = static_cast<int8_t>(steps.integer(key[d]));
  }
  for (uint32_t d = head_dim; d < padded_head(head_dim); ++d) out[int8_key_place(d, token)] = 0;
}

void store_value_int8(const float* value, uint32_t head_dim, uint32_t token, std::byte* run) {
  auto* out = reinterpret_cast<int8_t*>(run);
  const uint32_t padded = padded_head(head_dim);
  const Steps steps(value, head_dim, kInt8Levels);
  scales(run, head_dim)[token] = steps.step;
  for (uint32_t d = 0; d < padded; ++d)
    out[int8_value_place(d, token, padded)] =
        d < head_dim ? static_cast<int8_t>(steps.integer(value[d])) : int8_t{0};
}

const std::byte* run_of(const AttentionTile& tile, const std::byte* base, uint32_t token) {
  return base + tile.blocks[token / kKvBlockTokens] * tile.block_stride;
}

// One query over the tokens [begin, end) of its segment. `scaled` is scratch of a padded head,
// `weights` of a segment.
struct Row {
  const AttentionTile& tile;
  uint32_t begin, end;
  float* scaled;
  float* weights;

  // From scores to weights in place; gives the greatest score and the sum of the weights.
  void soften(float* partial) const {
    float greatest = -std::numeric_limits<float>::infinity();
    for (uint32_t t = begin; t < end; ++t)
      greatest = weights[t - begin] > greatest ? weights[t - begin] : greatest;
    float lanes[16] = {};
    for (uint32_t t = begin; t < end; ++t) {
      weights[t - begin] = attention_exp(weights[t - begin] - greatest);
      lanes[t % 16] += weights[t - begin];
    }
    partial[0] = greatest;
    partial[1] = sum_tree(lanes);
  }
};

struct Halves {
  static float score(const Row& row, uint32_t token) {
    const auto* key = reinterpret_cast<const uint16_t*>(run_of(row.tile, row.tile.keys, token)) +
                      token % kKvBlockTokens;
    float score = 0.0F;
    for (uint32_t d = 0; d < row.tile.head_dim; ++d)
      score = std::fma(row.scaled[d], f16_to_f32(key[d * kKvBlockTokens]), score);
    return score;
  }

  static void attend(const Row& row, float* partial) {
    const uint32_t head_dim = row.tile.head_dim;
    for (uint32_t t = row.begin; t < row.end; ++t) row.weights[t - row.begin] = score(row, t);
    row.soften(partial);
    float* weighted = partial + 16;
    for (uint32_t t = row.begin; t < row.end; ++t) {
      const auto* value = reinterpret_cast<const uint16_t*>(run_of(row.tile, row.tile.values, t)) +
                          size_t{t % kKvBlockTokens} * padded_head(head_dim);
      for (uint32_t d = 0; d < head_dim; ++d)
        weighted[d] = std::fma(row.weights[t - row.begin], f16_to_f32(value[d]), weighted[d]);
    }
  }
};

struct Integers {
  // Of the integers of a query.
  static float score(const Row& row, uint32_t token) {
    const std::byte* run = run_of(row.tile, row.tile.keys, token);
    const auto* key = reinterpret_cast<const int8_t*>(run);
    const uint32_t head_dim = row.tile.head_dim, place = token % kKvBlockTokens;
    float score = 0.0F;
    for (uint32_t begin = 0; begin < head_dim; begin += kInt8KeyGroup) {
      int32_t sum = 0;
      for (uint32_t d = begin; d < std::min(head_dim, begin + kInt8KeyGroup); ++d)
        sum += static_cast<int32_t>(row.scaled[d]) * key[int8_key_place(d, place)];
      const float scale = scales(run, head_dim)[begin / kInt8KeyGroup * kKvBlockTokens + place];
      score = std::fma(scale, static_cast<float>(sum), score);
    }
    return score;
  }

  // From numbers to integers in place; what one stands for.
  static float to_steps(float* x, uint32_t count) {
    const Steps steps(x, count, kInt16Levels);
    for (uint32_t i = 0; i < count; ++i) x[i] = steps.integer(x[i]);
    return steps.step;
  }

  static void attend(const Row& row, float* partial) {
    const uint32_t head_dim = row.tile.head_dim;
    const float query_step = to_steps(row.scaled, head_dim);
    for (uint32_t t = row.begin; t < row.end; ++t)
      row.weights[t - row.begin] = score(row, t) * query_step;
    row.soften(partial);
    for (uint32_t t = row.begin; t < row.end; ++t)
      row.weights[t - row.begin] *=
          scales(run_of(row.tile, row.tile.values, t), head_dim)[t % kKvBlockTokens];
    const float weight_step = to_steps(row.weights, row.end - row.begin);
    for (uint32_t d = 0; d < head_dim; ++d) {
      int32_t sum = 0;
      for (uint32_t t = row.begin; t < row.end; ++t) {
        const auto* value = reinterpret_cast<const int8_t*>(run_of(row.tile, row.tile.values, t));
        sum += static_cast<int32_t>(row.weights[t - row.begin]) *
               value[int8_value_place(d, t % kKvBlockTokens, padded_head(head_dim))];
      }
      partial[16 + d] = static_cast<float>(sum) * weight_step;
    }
  }
};

template <class Kv>
void attention_segment(const AttentionTile& tile, float* partials, float* scratch) {
  const uint32_t segment_begin = tile.segment * kSegmentTokens;
  for (uint32_t r = 0; r < tile.rows; ++r) {
    uint32_t begin = segment_begin;
    uint32_t end = tile.position + r + 1;
    if (tile.window != 0 && end > begin + tile.window) begin = end - tile.window;
    if (end > segment_begin + kSegmentTokens) end = segment_begin + kSegmentTokens;
    for (uint32_t g = 0; g < tile.group; ++g) {
      float* partial = partials + size_t{r * tile.group + g} * partial_floats(tile.head_dim);
      if (end <= begin) {
        partial[1] = 0.0F;
        continue;
      }
      std::memset(partial, 0, partial_floats(tile.head_dim) * sizeof(float));
      const float* query = tile.query + r * tile.query_stride + size_t{g} * tile.head_dim;
      const Row row{tile, begin, end, scratch + kSegmentTokens, scratch};
      for (uint32_t d = 0; d < tile.head_dim; ++d) row.scaled[d] = query[d] * tile.scale;
      Kv::attend(row, partial);
    }
  }
}

void attention_merge(float* into, const float* next, uint32_t head_dim) {
  if (next[1] == 0.0F) return;
  if (into[1] == 0.0F) {
    std::memcpy(into, next, partial_floats(head_dim) * sizeof(float));
    return;
  }
  const float greatest = next[0] > into[0] ? next[0] : into[0];
  const float a = attention_exp(into[0] - greatest);
  const float b = attention_exp(next[0] - greatest);
  into[0] = greatest;
  into[1] = std::fma(next[1], b, into[1] * a);
  for (uint32_t d = 16; d < 16 + head_dim; ++d) into[d] = std::fma(next[d], b, into[d] * a);
}

void attention_finish(const float* partial, uint32_t head_dim, float* out) {
  const float inverse = 1.0F / partial[1];
  for (uint32_t d = 0; d < head_dim; ++d) out[d] = partial[16 + d] * inverse;
}

void linear_f32(const LinearF32& layer) {
  for (uint32_t m = 0; m < layer.rows; ++m) {
    const float* x = layer.x + m * layer.x_stride;
    float sums[16] = {};
    for (uint32_t k = 0; k < layer.inputs; ++k)
      for (uint32_t l = 0; l < 16; ++l)
        sums[l] = std::fma(x[k], layer.weights[size_t{k} * 16 + l], sums[l]);
    for (uint32_t l = 0; l < layer.outputs; ++l) layer.out[m * layer.out_stride + l] = sums[l];
  }
}

}  // namespace

const Ops& scalar_ops() {
  static constexpr Ops kOps = {
      .rms_norm = rms_norm,
      .add = add,
      .scale = scale,
      .swiglu = swiglu,
      .geglu = geglu,
      .rotate = rotate,
      .rotate_halves = rotate_halves,
      .kv_f16 = {store_key_f16, store_value_f16, attention_segment<Halves>},
      .kv_int8 = {store_key_int8, store_value_int8, attention_segment<Integers>},
      .attention_merge = attention_merge,
      .attention_finish = attention_finish,
      .linear_f32 = linear_f32,
  };
  return kOps;
}

}  // namespace troupe
