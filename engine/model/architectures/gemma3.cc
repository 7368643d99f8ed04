// Gemma 3, text (Gemma Team 2025). Beside Llama: scaled embeddings, RMS norms also over each head
// of q and k and behind both halves of a layer, gelu instead of silu, and five layers with a
// sliding window, and a rotary base of their own, to each one that sees everything. The file's norm
// weights are complete: the converter has added the 1 that the published weights leave out.

#include <cmath>

#include "engine/model/architectures/architecture.h"

namespace troupe {
namespace {

constexpr uint32_t kGlobalEvery = 6;
constexpr float kWindowRopeBase = 10'000.0F;
// The 27B model, known by its layers, scales queries by the width per head, not by the head's size.
constexpr uint32_t kLayersOf27B = 62;

void read(ConfigReader& reader, ModelConfig& config) {
  config.rope_pairs = RopePairs::kHalves;
  config.activation = Activation::kGeluTanh;
  config.embedding_scale = std::sqrt(static_cast<float>(config.width));
  if (config.layers == kLayersOf27B)
    config.attention_scale =
        1.0F / std::sqrt(static_cast<float>(config.width) / static_cast<float>(config.heads));
  config.window = reader.number_or_zero("attention.sliding_window", ModelLimits::kContextMax);
  config.global_every =
      reader.number_or("attention.sliding_window_pattern", kGlobalEvery, ModelLimits::kLayersMax);
  config.window_rope_freq_base =
      reader.in_range_or("rope.freq_base_swa", kWindowRopeBase, 1.0F, ModelLimits::kRopeBaseMax);
}

LayerTensors bind_layer(TensorBinder& binder, const ModelConfig& config, uint32_t layer) {
  LayerTensors tensors = bind_plain_layer(binder, config, layer);
  bind_head_norms(binder, config, layer, tensors);
  const std::string prefix = layer_prefix(layer);
  tensors.attn_post_norm = binder.vector(prefix + "post_attention_norm.weight", config.width);
  tensors.ffn_post_norm = binder.vector(prefix + "post_ffw_norm.weight", config.width);
  return tensors;
}

}  // namespace

Architecture gemma3_architecture() {
  return {.name = "gemma3", .models = "Gemma 3", .read = read, .bind_layer = bind_layer};
}

}  // namespace troupe
