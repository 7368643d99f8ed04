// Qwen 3, dense (Yang et al. 2025): no biases, but an RMS norm over each head of q and k.

#include "engine/model/architectures/architecture.h"

namespace troupe {
namespace {

LayerTensors bind_layer(TensorBinder& binder, const ModelConfig& config, uint32_t layer) {
  LayerTensors tensors = bind_plain_layer(binder, config, layer);
  bind_head_norms(binder, config, layer, tensors);
  return tensors;
}

}  // namespace

Architecture qwen3_architecture() {
  return {.name = "qwen3",
          .models = "Qwen 3",
          .read =
              [](ConfigReader& reader, ModelConfig& config) {
                config.rope_pairs = RopePairs::kHalves;
                refuse_window(reader, config);
              },
          .bind_layer = bind_layer};
}

}  // namespace troupe
