#include <string>

#include "engine/model/architectures/architecture.h"

namespace troupe {

std::string layer_prefix(uint32_t layer) {
  return "blk." + std::to_string(layer) + ".";
}

LayerTensors bind_plain_layer(TensorBinder& binder, const ModelConfig& config, uint32_t layer) {
  const std::string prefix = layer_prefix(layer);
  LayerTensors t;
  t.attn_norm = binder.vector(prefix + "attn_norm.weight", config.width);
  t.attn_q = binder.matrix(prefix + "attn_q.weight", config.width, config.query_width());
  t.attn_k = binder.matrix(prefix + "attn_k.weight", config.width, config.kv_width());
  t.attn_v = binder.matrix(prefix + "attn_v.weight", config.width, config.kv_width());
  t.attn_output = binder.matrix(prefix + "attn_output.weight", config.query_width(), config.width);
  t.ffn_norm = binder.vector(prefix + "ffn_norm.weight", config.width);
  t.ffn_gate = binder.matrix(prefix + "ffn_gate.weight", config.width, config.ffn_width);
  t.ffn_up = binder.matrix(prefix + "ffn_up.weight", config.width, config.ffn_width);
  t.ffn_down = binder.matrix(prefix + "ffn_down.weight", config.ffn_width, config.width);
  return t;
}

void bind_head_norms(TensorBinder& binder, const ModelConfig& config, uint32_t layer,
                     LayerTensors& tensors) {
  const std::string prefix = layer_prefix(layer);
  tensors.attn_q_norm = binder.vector(prefix + "attn_q_norm.weight", config.head_size);
  tensors.attn_k_norm = binder.vector(prefix + "attn_k_norm.weight", config.head_size);
}

void refuse_window(ConfigReader& reader, const ModelConfig& config) {
  const uint32_t window =
      reader.number_or_zero("attention.sliding_window", ModelLimits::kContextMax);
  if (window != 0 && window < config.context_length)
    reader.unsupported("attention.sliding_window", "asks for attention over a sliding window");
}

}  // namespace troupe
