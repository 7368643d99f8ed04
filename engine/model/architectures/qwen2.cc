// Qwen 2 and 2.5 (Yang et al. 2024): a Llama with biases on q, k and v.

#include "engine/model/architectures/architecture.h"

namespace troupe {
namespace {

LayerTensors bind_layer(TensorBinder& binder, const ModelConfig& config, uint32_t layer) {
  LayerTensors tensors = bind_plain_layer(binder, config, layer);
  const std::string prefix = layer_prefix(layer);
  tensors.attn_q_bias = binder.vector(prefix + "attn_q.bias", config.query_width());
  tensors.attn_k_bias = binder.vector(prefix + "attn_k.bias", config.kv_width());
  tensors.attn_v_bias = binder.vector(prefix + "attn_v.bias", config.kv_width());
  return tensors;
}

}  // namespace

Architecture qwen2_architecture() {
  return {.name = "qwen2",
          .models = "Qwen 2 and 2.5",
          .read =
              [](ConfigReader& reader, ModelConfig& config) {
                config.rope_pairs = RopePairs::kHalves;
                refuse_window(reader, config);
              },
          .bind_layer = bind_layer};
}

}  // namespace troupe
