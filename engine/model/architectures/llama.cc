// Llama (Touvron et al. 2023) and what copies it. Its converter reorders the rows of q and k so
// that rotary pairs are adjacent.

#include "engine/model/architectures/architecture.h"

namespace troupe {
namespace {

LayerTensors bind_layer(TensorBinder& binder, const ModelConfig& config, uint32_t layer) {
  const LayerTensors tensors = bind_plain_layer(binder, config, layer);
  // Some old files carry the rotary frequencies per layer; they follow from the metadata.
  binder.ignore(layer_prefix(layer) + "attn_rot_embd.weight");
  return tensors;
}

}  // namespace

Architecture llama_architecture() {
  return {.name = "llama",
          .models = "SmolLM2, Llama 2 and 3, Mistral",
          .read = [](ConfigReader& reader, ModelConfig& config) { refuse_window(reader, config); },
          .bind_layer = bind_layer};
}

}  // namespace troupe
