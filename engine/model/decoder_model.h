#pragma once
// A decoder on a Backend: weights uploaded once from a GGUF file, and the forward pass of one
// batch, the same for all families. What differs between them is in ModelConfig and in which
// tensors are there (engine/model/architectures). Holds handles only; knows nothing of sequences,
// scheduling or sampling.

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/model/gguf_file.h"
#include "engine/model/model_config.h"
#include "troupe/status.h"

namespace troupe {

// Called on the loading thread after each tensor: bytes of the file done, of how many.
using LoadProgress = std::function<void(uint64_t done_bytes, uint64_t total_bytes)>;

// Called when KV of a layer has been enqueued for storing, in the order of the layers.
using LayerStored = std::function<void(uint32_t layer)>;

// Where KV of the layers stands: all of it in one pool, or, where `windowed` is not 0, that of the
// layers with a window in a pool of their own.
struct DecoderKv {
  KvHandle all;
  KvHandle windowed;
};

// The intermediate rows of one pass, allocated once for `rows_max` rows.
struct DecoderActivations {
  uint32_t rows_max = 0;
  uint32_t logits_rows_max = 0;
  BufferHandle residual;   // [rows][width]
  BufferHandle projected;  // [rows][width]: what a half adds, where it is normalised first
  BufferHandle query, key, value, attended;
  BufferHandle gated;   // [rows][ffn_width]
  BufferHandle last;    // [logits_rows][width]: gathered, normed
  BufferHandle logits;  // [logits_rows][vocab]
};

// Not movable: Executor and backend refer to it.
class DecoderModel {
 public:
  // Uploads every weight of `file` into `backend`. The file's pages are given back to the system
  // while they are uploaded. Of the embedding table a lookup reads one row in place; so `file` and
  // `backend` must outlive the model; `description` is read_model(file). kUnsupported, kDataLoss,
  // kResourceExhausted: from the backend; messages name the tensor.
  [[nodiscard]] static Result<std::unique_ptr<DecoderModel>> load(
      const GgufFile& file, const ModelDescription& description, Backend& backend,
      const LoadProgress& progress = {});

  DecoderModel(const DecoderModel&) = delete;
  DecoderModel& operator=(const DecoderModel&) = delete;

  [[nodiscard]] const ModelConfig& config() const { return config_; }

  [[nodiscard]] Result<DecoderActivations> make_activations(uint32_t rows_max,
                                                            uint32_t logits_rows_max) const;
  void release(const DecoderActivations& activations) const;
  // Bytes that make_activations() takes.
  [[nodiscard]] static uint64_t activation_bytes(const ModelConfig& config, uint32_t rows_max,
                                                 uint32_t logits_rows_max);

  // Enqueues the pass over `batch` through all layers, storing KV; leaves the rows before the final
  // norm in activations.residual. batch.tokens.size() <= rows_max.
  void forward(const Batch& batch, const DecoderKv& kv, const DecoderActivations& activations,
               const LayerStored& stored = {}) const;

  // Enqueues gathering `rows` (indices into the batch's rows of the latest forward()), at most
  // logits_rows_max, behind the final norm into activations.last.
  void final_rows(std::span<const uint32_t> rows, const DecoderActivations& activations) const;

  // Enqueues the logits of `rows` (indices into the batch's rows of the latest forward()), at most
  // logits_rows_max, into activations.logits.
  void logits(std::span<const uint32_t> rows, const DecoderActivations& activations) const;

 private:
  // Vectors that the family does not have keep the value 0.
  struct Layer {
    VectorHandle attn_norm, ffn_norm;
    LinearHandle query, key, value, output;
    LinearHandle gate, up, down;
    VectorHandle query_bias, key_bias, value_bias;
    VectorHandle query_norm, key_norm;
    VectorHandle attn_post_norm, ffn_post_norm;
  };

  // From activations.residual to activations.attended.
  void attend(uint32_t index, const DecoderKv& kv, uint32_t rows,
              const DecoderActivations& activations, const LayerStored& stored) const;
  // Adds weights * in to activations.residual, normalised first where there is a norm for it.
  void add_product(LinearHandle weights, Rows in, VectorHandle post_norm,
                   const DecoderActivations& activations) const;
  // Makes the rows' heads, each one a row of its own, of the root mean square that `norm` says.
  void norm_heads(Rows rows, VectorHandle norm) const;
  [[nodiscard]] AttentionLayer attention_layer(uint32_t index, bool is_apart) const;

  DecoderModel(const ModelConfig& config, Backend& backend) : config_(config), backend_(backend) {}

  [[nodiscard]] Status make_ropes();

  const ModelConfig config_;
  Backend& backend_;
  EmbeddingHandle embedding_;
  RopeHandle rope_;
  RopeHandle window_rope_;  // of windowed layers; 0 where there are none
  std::vector<Layer> layers_;
  VectorHandle final_norm_;
  LinearHandle head_;
};

}  // namespace troupe
