#include "engine/model/llama.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"

namespace troupe {
namespace {

// Uploads tensors one by one, releases their pages and reports how far it has come.
class Uploader {
 public:
  Uploader(const GgufFile& file, Backend& backend, const LoadProgress& progress, uint64_t total)
      : file_(file), backend_(backend), progress_(progress), total_(total) {}

  static TensorSource source(const GgufTensor& tensor) {
    return {.name = tensor.name,
            .type = tensor.type,
            .inputs = static_cast<uint32_t>(tensor.row_weights()),
            .outputs = static_cast<uint32_t>(tensor.rows()),
            .bytes = {tensor.data, static_cast<size_t>(tensor.bytes)}};
  }

  [[nodiscard]] Status upload(const GgufTensor& tensor, LinearHandle& handle) {
    TROUPE_ASSIGN_OR_RETURN(handle, backend_.upload_linear(source(tensor)));
    finish(tensor);
    return ok_status();
  }
  [[nodiscard]] Status upload(const GgufTensor& tensor, VectorHandle& handle) {
    TROUPE_ASSIGN_OR_RETURN(handle, backend_.upload_vector(source(tensor)));
    finish(tensor);
    return ok_status();
  }

 private:
  void finish(const GgufTensor& tensor) {
    file_.release_pages(tensor);
    done_ += tensor.bytes;
    if (progress_) progress_(done_, total_);
  }

  const GgufFile& file_;
  Backend& backend_;
  const LoadProgress& progress_;
  const uint64_t total_;
  uint64_t done_ = 0;
};

uint64_t upload_bytes(const ModelTensors& tensors) {
  uint64_t bytes = tensors.output->bytes + tensors.output_norm->bytes;
  for (const LayerTensors& layer : tensors.layers)
    for (const GgufTensor* tensor :
         {layer.attn_norm, layer.attn_q, layer.attn_k, layer.attn_v, layer.attn_output,
          layer.ffn_norm, layer.ffn_gate, layer.ffn_up, layer.ffn_down})
      bytes += tensor->bytes;
  return bytes;
}

struct ActivationBuffer {
  BufferHandle LlamaActivations::*handle;
  uint64_t floats;
};

std::array<ActivationBuffer, 11> activation_buffers(const ModelConfig& config, uint64_t rows,
                                                    uint64_t logits_rows) {
  using A = LlamaActivations;
  return {{{&A::residual, rows * config.width},
           {&A::normed, rows * config.width},
           {&A::projected, rows * config.width},
           {&A::query, rows * config.query_width()},
           {&A::key, rows * config.kv_width()},
           {&A::value, rows * config.kv_width()},
           {&A::attended, rows * config.query_width()},
           {&A::gate, rows * config.ffn_width},
           {&A::up, rows * config.ffn_width},
           {&A::last, logits_rows * config.width},
           {&A::logits, logits_rows * config.vocab}}};
}

}  // namespace

Result<std::unique_ptr<LlamaModel>> LlamaModel::load(const GgufFile& file,
                                                     const ModelDescription& description,
                                                     Backend& backend,
                                                     const LoadProgress& progress) {
  const ModelConfig& config = description.config;
  const ModelTensors& tensors = description.tensors;
  TROUPE_ASSERT(tensors.layers.size() == config.layers, tensors.layers.size(), config.layers);
  std::unique_ptr<LlamaModel> model(new LlamaModel(config, backend));
  Uploader uploader(file, backend, progress, upload_bytes(tensors));
  model->layers_.resize(config.layers);
  for (uint32_t l = 0; l < config.layers; ++l) {
    const LayerTensors& from = tensors.layers[l];
    Layer& layer = model->layers_[l];
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.attn_norm, layer.attn_norm));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.attn_q, layer.query));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.attn_k, layer.key));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.attn_v, layer.value));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.attn_output, layer.output));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.ffn_norm, layer.ffn_norm));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.ffn_gate, layer.gate));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.ffn_up, layer.up));
    TROUPE_RETURN_IF_ERROR(uploader.upload(*from.ffn_down, layer.down));
  }
  TROUPE_RETURN_IF_ERROR(uploader.upload(*tensors.output_norm, model->final_norm_));
  TROUPE_RETURN_IF_ERROR(uploader.upload(*tensors.output, model->head_));
  // A tied output was packed from the same bytes; embeddings are looked up in the file's.
  TROUPE_ASSIGN_OR_RETURN(model->embedding_,
                          backend.upload_embedding(Uploader::source(*tensors.token_embd)));
  TROUPE_ASSIGN_OR_RETURN(
      model->rope_,
      backend.make_rope({.head_dim = config.head_size,
                         .rotated_dim = config.rope_dims,
                         .base = static_cast<double>(config.rope_freq_base),
                         .linear_scale = static_cast<double>(config.rope_linear_scale),
                         .frequency_factors = config.rope_factors}));
  return model;
}

Result<LlamaActivations> LlamaModel::make_activations(uint32_t rows_max,
                                                      uint32_t logits_rows_max) const {
  TROUPE_ASSERT(rows_max > 0 && logits_rows_max > 0, rows_max, logits_rows_max);
  LlamaActivations made;
  made.rows_max = rows_max;
  made.logits_rows_max = logits_rows_max;
  for (const auto& [handle, floats] : activation_buffers(config_, rows_max, logits_rows_max)) {
    auto buffer = backend_.allocate(floats * sizeof(float), MemoryKind::kDevice);
    if (!buffer.ok()) {
      release(made);
      return buffer.status();
    }
    made.*handle = buffer.value();
  }
  Status prepared = backend_.prepare(std::max(rows_max, logits_rows_max));
  if (!prepared.ok()) {
    release(made);
    return prepared;
  }
  return made;
}

void LlamaModel::release(const LlamaActivations& activations) const {
  for (const auto& [handle, floats] : activation_buffers(config_, 1, 1))
    if ((activations.*handle).value != 0) backend_.release(activations.*handle);
}

uint64_t LlamaModel::activation_bytes(const ModelConfig& config, uint32_t rows_max,
                                      uint32_t logits_rows_max) {
  uint64_t floats = 0;
  for (const auto& buffer : activation_buffers(config, rows_max, logits_rows_max))
    floats += buffer.floats;
  return floats * sizeof(float);
}

void LlamaModel::forward(const Batch& batch, KvHandle kv, const LlamaActivations& a,
                         const LayerStored& stored) const {
  const auto rows = static_cast<uint32_t>(batch.tokens.size());
  TROUPE_ASSERT(rows > 0 && rows <= a.rows_max, rows, a.rows_max);
  const auto of = [&](BufferHandle buffer, uint32_t width) { return Rows{buffer, 0, rows, width}; };
  const Rows residual = of(a.residual, config_.width);
  const Rows normed = of(a.normed, config_.width);
  const Rows projected = of(a.projected, config_.width);
  const Rows query = of(a.query, config_.query_width());
  const Rows key = of(a.key, config_.kv_width());
  const Rows value = of(a.value, config_.kv_width());
  const Rows attended = of(a.attended, config_.query_width());
  const Rows gate = of(a.gate, config_.ffn_width);
  const Rows up = of(a.up, config_.ffn_width);

  backend_.set_batch(batch, rope_);
  backend_.embed(embedding_, residual);
  for (uint32_t l = 0; l < config_.layers; ++l) {
    const Layer& layer = layers_[l];
    backend_.rms_norm(residual, layer.attn_norm, config_.rms_epsilon, normed);
    backend_.linear(std::array{layer.query, layer.key, layer.value}, normed,
                    std::array{query, key, value});
    backend_.rope_and_store(query, key, value, kv, l);
    if (stored) stored(l);
    backend_.attention(query, kv, l, attended);
    backend_.linear(std::array{layer.output}, attended, std::array{projected});
    backend_.add(residual, projected);
    backend_.rms_norm(residual, layer.ffn_norm, config_.rms_epsilon, normed);
    backend_.linear(std::array{layer.gate, layer.up}, normed, std::array{gate, up});
    backend_.swiglu(gate, up, gate);
    backend_.linear(std::array{layer.down}, gate, std::array{projected});
    backend_.add(residual, projected);
  }
}

void LlamaModel::final_rows(std::span<const uint32_t> rows, const LlamaActivations& a) const {
  const auto count = static_cast<uint32_t>(rows.size());
  TROUPE_ASSERT(count > 0 && count <= a.logits_rows_max, count, a.logits_rows_max);
  const Rows last{a.last, 0, count, config_.width};
  backend_.gather_rows({a.residual, 0, a.rows_max, config_.width}, rows, last);
  backend_.rms_norm(last, final_norm_, config_.rms_epsilon, last);
}

void LlamaModel::logits(std::span<const uint32_t> rows, const LlamaActivations& a) const {
  final_rows(rows, a);
  const auto count = static_cast<uint32_t>(rows.size());
  const Rows last{a.last, 0, count, config_.width};
  backend_.linear(std::array{head_}, last, std::array{Rows{a.logits, 0, count, config_.vocab}});
}

}  // namespace troupe
