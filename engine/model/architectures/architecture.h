#pragma once
// What one model family adds to the decoder that all share (engine/model/decoder_model.h): which
// keys and tensors its files have, and the traits of its pass. docs/adding-a-model.md tells how to
// add one.

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/model/config_reader.h"
#include "engine/model/model_config.h"
#include "engine/model/tensor_binder.h"

namespace troupe {

struct Architecture {
  std::string_view name;    // general.architecture
  std::string_view models;  // that have it, for messages
  // Reads the keys of its own and sets the traits of `config`, in which the numbers that all
  // architectures share stand already.
  void (*read)(ConfigReader& reader, ModelConfig& config) = nullptr;
  // Takes the tensors of layer `layer`; those that the family does not have stay null.
  LayerTensors (*bind_layer)(TensorBinder& binder, const ModelConfig& config,
                             uint32_t layer) = nullptr;
};

// In architectures.cc; each is defined in the file of its name.
[[nodiscard]] std::span<const Architecture> architectures();
// Null for a name that is not known.
[[nodiscard]] const Architecture* find_architecture(std::string_view name);

[[nodiscard]] Architecture llama_architecture();
[[nodiscard]] Architecture qwen2_architecture();
[[nodiscard]] Architecture qwen3_architecture();
[[nodiscard]] Architecture gemma3_architecture();

// --- What several of them have in common; in common.cc.

// "blk.7."
[[nodiscard]] std::string layer_prefix(uint32_t layer);
// The nine tensors of every layer: two norms, q, k, v, output, gate, up, down.
[[nodiscard]] LayerTensors bind_plain_layer(TensorBinder& binder, const ModelConfig& config,
                                            uint32_t layer);
// attn_q_norm and attn_k_norm, over the elements of a head.
void bind_head_norms(TensorBinder& binder, const ModelConfig& config, uint32_t layer,
                     LayerTensors& tensors);
// Refuses a window shorter than the context, for families whose layers all see everything.
void refuse_window(ConfigReader& reader, const ModelConfig& config);

}  // namespace troupe
