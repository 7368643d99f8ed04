#pragma once
// What a GGUF file says about its model, validated: the numbers and traits of a decoder and the
// tensors of every layer, with the right shapes. Whoever holds a ModelDescription need not check
// again. What is special about one family stands in engine/model/architectures.

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "engine/model/gguf_file.h"
#include "kernels/ops/activation.h"
#include "kernels/ops/kv_storage.h"
#include "kernels/ops/rope_pairs.h"
#include "troupe/status.h"

namespace troupe {

// Ranges that a file's numbers must lie in; far above what real models hold, low enough that no
// product of two of them overflows 64 bits.
struct ModelLimits {
  static constexpr uint32_t kLayersMax = 4'096;
  static constexpr uint32_t kContextMax = uint32_t{1} << 26;
  static constexpr uint32_t kWidthMax = uint32_t{1} << 20;
  static constexpr uint32_t kHeadsMax = 65'536;
  static constexpr uint32_t kHeadSizeMax = 65'536;
  static constexpr uint32_t kVocabMax = uint32_t{1} << 24;
  // Together they keep every rotary angle below 2^46, where its reduction is exact.
  static constexpr float kRopeBaseMax = 0x1p60F;  // from 1
  static constexpr float kRopeFactorMin = 0x1p-10F;
  static constexpr float kRopeFactorMax = 0x1p20F;
};

struct ModelConfig {
  std::string architecture;  // "llama"
  std::string name;          // general.name, or empty; any bytes
  uint32_t layers = 0;
  uint32_t context_length = 0;  // tokens that the model was trained for
  uint32_t width = 0;           // of the residual stream (embedding_length)
  uint32_t ffn_width = 0;
  uint32_t heads = 0;
  uint32_t kv_heads = 0;  // divides heads; query head h reads KV head h / (heads / kv_heads)
  uint32_t head_size =
      0;  // of query, key and value heads alike; heads * head_size may differ from width
  uint32_t vocab = 0;
  float rms_epsilon = 0.0F;

  // Rotary embedding over the first rope_dims of each query and key head. The angle of pair i at
  // position p is
  //   p * rope_linear_scale * rope_freq_base^(-2i / rope_dims) / rope_factors[i].
  uint32_t rope_dims = 0;  // even
  RopePairs rope_pairs = RopePairs::kAdjacent;
  float rope_freq_base = 10'000.0F;
  float rope_linear_scale = 1.0F;   // 1 / the file's linear scaling factor
  std::vector<float> rope_factors;  // empty (all 1) or rope_dims / 2

  // A windowed layer sees the last `window` tokens, its own included, and turns by
  // window_rope_freq_base without scale and factors. 0: there is none.
  uint32_t window = 0;
  uint32_t global_every = 1;  // of so many layers in a row the last one sees everything
  float window_rope_freq_base = 10'000.0F;

  float embedding_scale = 1.0F;  // of what the embedding table gives
  float attention_scale = 0.0F;  // of the products of queries and keys
  Activation activation = Activation::kSilu;
  bool tied_output = false;  // the output layer is token_embd

  [[nodiscard]] uint32_t query_width() const { return heads * head_size; }
  [[nodiscard]] uint32_t kv_width() const { return kv_heads * head_size; }
  [[nodiscard]] bool windowed(uint32_t layer) const {
    return window != 0 && (layer + 1) % global_every != 0;
  }
  [[nodiscard]] uint32_t windowed_layers() const {
    return window == 0 ? 0 : layers - layers / global_every;
  }
  // How many layers before this one have a window, as it has, or have none.
  [[nodiscard]] uint32_t alike_before(uint32_t layer) const {
    if (window == 0) return layer;
    return windowed(layer) ? layer - layer / global_every : layer / global_every;
  }
  bool operator==(const ModelConfig&) const = default;
};

// Shapes as [inputs, outputs]; a row of `inputs` weights gives one output.
struct LayerTensors {
  const GgufTensor* attn_norm = nullptr;    // [width]
  const GgufTensor* attn_q = nullptr;       // [width, query_width]
  const GgufTensor* attn_k = nullptr;       // [width, kv_width]
  const GgufTensor* attn_v = nullptr;       // [width, kv_width]
  const GgufTensor* attn_output = nullptr;  // [query_width, width]
  const GgufTensor* ffn_norm = nullptr;     // [width]
  const GgufTensor* ffn_gate = nullptr;     // [width, ffn_width]
  const GgufTensor* ffn_up = nullptr;       // [width, ffn_width]
  const GgufTensor* ffn_down = nullptr;     // [ffn_width, width]

  // Null in families that have none; alike in all layers.
  const GgufTensor* attn_q_bias = nullptr;     // [query_width]
  const GgufTensor* attn_k_bias = nullptr;     // [kv_width]
  const GgufTensor* attn_v_bias = nullptr;     // [kv_width]
  const GgufTensor* attn_q_norm = nullptr;     // [head_size]
  const GgufTensor* attn_k_norm = nullptr;     // [head_size]
  const GgufTensor* attn_post_norm = nullptr;  // [width]: of what attention adds
  const GgufTensor* ffn_post_norm = nullptr;   // [width]: of what the feed-forward half adds
};

// Pointers into the GgufFile's tensors(); never null but where said.
struct ModelTensors {
  const GgufTensor* token_embd = nullptr;   // [width, vocab]
  const GgufTensor* output_norm = nullptr;  // [width]
  const GgufTensor* output = nullptr;       // [width, vocab]; == token_embd when tied
  std::vector<LayerTensors> layers;
};

struct ModelDescription {
  ModelConfig config;
  ModelTensors tensors;
};

// kUnsupported for another architecture, a rope scaling that is not built in, experts, and every
// tensor that would change the arithmetic; kDataLoss for a missing or impossible number, a
// missing tensor or a wrong shape. `file` must outlive the result.
[[nodiscard]] Result<ModelDescription> read_model(const GgufFile& file);

struct MemoryEstimate {
  uint64_t weight_bytes = 0;  // of all tensors, as stored in the file
  uint64_t kv_bytes_per_token = 0;
  uint64_t kv_bytes_per_block = 0;  // of kBlockTokens tokens, all layers
};

[[nodiscard]] MemoryEstimate estimate_memory(const GgufFile& file, const ModelConfig& config,
                                             KvType kv_type);

}  // namespace troupe
