#pragma once
// The Llama family on a Backend: weights uploaded once from a GGUF file, and the forward pass of
// one batch. Holds handles only; knows nothing of sequences, scheduling or sampling.

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

// The intermediate rows of one pass, allocated once for `rows_max` rows.
struct LlamaActivations {
  uint32_t rows_max = 0;
  uint32_t logits_rows_max = 0;
  BufferHandle residual;   // [rows][width]
  BufferHandle normed;     // [rows][width]
  BufferHandle projected;  // [rows][width]: of attention and feed-forward, added to residual
  BufferHandle query, key, value, attended;
  BufferHandle gate, up;  // [rows][ffn_width]
  BufferHandle last;      // [logits_rows][width]: gathered, normed
  BufferHandle logits;    // [logits_rows][vocab]
};

// Not movable: Executor and backend refer to it.
class LlamaModel {
 public:
  // Uploads every weight of `file` into `backend`. The file's pages are given back to the system
  // as they are uploaded, except those of the embedding table, of which a lookup reads one row; so
  // `file` and `backend` must outlive the model; `description` is read_model(file).
  // kUnsupported, kDataLoss, kResourceExhausted: from the backend; messages name the tensor.
  [[nodiscard]] static Result<std::unique_ptr<LlamaModel>> load(const GgufFile& file,
                                                                const ModelDescription& description,
                                                                Backend& backend,
                                                                const LoadProgress& progress = {});

  LlamaModel(const LlamaModel&) = delete;
  LlamaModel& operator=(const LlamaModel&) = delete;

  [[nodiscard]] const ModelConfig& config() const { return config_; }

  [[nodiscard]] Result<LlamaActivations> make_activations(uint32_t rows_max,
                                                          uint32_t logits_rows_max) const;
  void release(const LlamaActivations& activations) const;
  // Bytes that make_activations() takes.
  [[nodiscard]] static uint64_t activation_bytes(const ModelConfig& config, uint32_t rows_max,
                                                 uint32_t logits_rows_max);

  // Enqueues the pass over `batch` through all layers, storing KV; leaves the rows before the final
  // norm in activations.residual. batch.tokens.size() <= rows_max.
  void forward(const Batch& batch, KvHandle kv, const LlamaActivations& activations,
               const LayerStored& stored = {}) const;

  // Enqueues gathering `rows` (indices into the batch's rows of the latest forward()), at most
  // logits_rows_max, behind the final norm into activations.last.
  void final_rows(std::span<const uint32_t> rows, const LlamaActivations& activations) const;

  // Enqueues the logits of `rows` (indices into the batch's rows of the latest forward()), at most
  // logits_rows_max, into activations.logits.
  void logits(std::span<const uint32_t> rows, const LlamaActivations& activations) const;

 private:
  struct Layer {
    VectorHandle attn_norm, ffn_norm;
    LinearHandle query, key, value, output;
    LinearHandle gate, up, down;
  };

  LlamaModel(const ModelConfig& config, Backend& backend) : config_(config), backend_(backend) {}

  const ModelConfig config_;
  Backend& backend_;
  EmbeddingHandle embedding_;
  RopeHandle rope_;
  std::vector<Layer> layers_;
  VectorHandle final_norm_;
  LinearHandle head_;
};

}  // namespace troupe
