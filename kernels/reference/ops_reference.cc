#include "kernels/reference/ops_reference.h"

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

uint16_t saturated_half(float x) {
  x = x > 65504.0F ? 65504.0F : x;
  x = x < -65504.0F ? -65504.0F : x;
  return f32_to_f16(x);
}

void store_key(const float* key, uint32_t head_dim, uint32_t token, uint16_t* head) {
  for (uint32_t d = 0; d < head_dim; ++d) head[d * kKvBlockTokens + token] = saturated_half(key[d]);
}

void store_value(const float* value, uint32_t head_dim, uint32_t token, uint16_t* head) {
  uint16_t* out = head + size_t{token} * padded_head(head_dim);
  for (uint32_t d = 0; d < head_dim; ++d) out[d] = saturated_half(value[d]);
  for (uint32_t d = head_dim; d < padded_head(head_dim); ++d) out[d] = 0;
}

const uint16_t* block_of(const AttentionTile& tile, const uint16_t* base, uint32_t token) {
  return base + tile.blocks[token / kKvBlockTokens] * tile.block_stride;
}

// One query over the tokens [begin, end) of its segment.
void attend(const AttentionTile& tile, const float* query, uint32_t begin, uint32_t end,
            float* partial, float* scratch) {
  float* scores = scratch;
  float* scaled = scratch + kSegmentTokens;
  for (uint32_t d = 0; d < tile.head_dim; ++d) scaled[d] = query[d] * tile.scale;
  float greatest = -std::numeric_limits<float>::infinity();
  for (uint32_t t = begin; t < end; ++t) {
    const uint16_t* key = block_of(tile, tile.keys, t) + t % kKvBlockTokens;
    float score = 0.0F;
    for (uint32_t d = 0; d < tile.head_dim; ++d)
      score = std::fma(scaled[d], f16_to_f32(key[d * kKvBlockTokens]), score);
    scores[t - begin] = score;
    greatest = score > greatest ? score : greatest;
  }
  float lanes[16] = {};
  float* weighted = partial + 16;
  std::memset(weighted, 0, padded_head(tile.head_dim) * sizeof(float));
  for (uint32_t t = begin; t < end; ++t) {
    const float p = attention_exp(scores[t - begin] - greatest);
    lanes[t % 16] += p;
    const uint16_t* value =
        block_of(tile, tile.values, t) + size_t{t % kKvBlockTokens} * padded_head(tile.head_dim);
    for (uint32_t d = 0; d < tile.head_dim; ++d)
      weighted[d] = std::fma(p, f16_to_f32(value[d]), weighted[d]);
  }
  partial[0] = greatest;
  partial[1] = sum_tree(lanes);
}

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
      attend(tile, tile.query + r * tile.query_stride + size_t{g} * tile.head_dim, begin, end,
             partial, scratch);
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
      .store_key = store_key,
      .store_value = store_value,
      .attention_segment = attention_segment,
      .attention_merge = attention_merge,
      .attention_finish = attention_finish,
      .linear_f32 = linear_f32,
  };
  return kOps;
}

}  // namespace troupe
