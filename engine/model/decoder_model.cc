#include "engine/model/decoder_model.h"

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

  [[nodiscard]] TensorSource source(const GgufTensor& tensor) const {
    return {.name = tensor.name,
            .type = tensor.type,
            .inputs = static_cast<uint32_t>(tensor.row_weights()),
            .outputs = static_cast<uint32_t>(tensor.rows()),
            .bytes = {tensor.data, static_cast<size_t>(tensor.bytes)},
            .release = [&file = file_](auto part) { file.release_pages(part); }};
  }

  // The first error is kept; nothing is uploaded after it, nor for a null tensor.
  void upload(const GgufTensor* tensor, LinearHandle& handle) {
    if (tensor != nullptr && status_.ok())
      take(*tensor, backend_.upload_linear(source(*tensor)), handle);
  }
  void upload(const GgufTensor* tensor, VectorHandle& handle) {
    if (tensor != nullptr && status_.ok())
      take(*tensor, backend_.upload_vector(source(*tensor)), handle);
  }
  [[nodiscard]] const Status& status() const { return status_; }

 private:
  template <class Handle>
  void take(const GgufTensor& tensor, const Result<Handle>& uploaded, Handle& handle) {
    if (!uploaded.ok()) {
      status_ = uploaded.status();
      return;
    }
    handle = uploaded.value();
    file_.release_pages({tensor.data, static_cast<size_t>(tensor.bytes)});
    done_ += tensor.bytes;
    if (progress_) progress_(done_, total_);
  }

  const GgufFile& file_;
  Backend& backend_;
  const LoadProgress& progress_;
  const uint64_t total_;
  uint64_t done_ = 0;
  Status status_;
};

uint64_t upload_bytes(const ModelTensors& tensors) {
  uint64_t bytes = tensors.output->bytes + tensors.output_norm->bytes;
  for (const LayerTensors& layer : tensors.layers)
    for (const GgufTensor* tensor :
         {layer.attn_norm, layer.attn_q, layer.attn_k, layer.attn_v, layer.attn_output,
          layer.ffn_norm, layer.ffn_gate, layer.ffn_up, layer.ffn_down, layer.attn_q_bias,
          layer.attn_k_bias, layer.attn_v_bias, layer.attn_q_norm, layer.attn_k_norm,
          layer.attn_post_norm, layer.ffn_post_norm})
      bytes += tensor != nullptr ? tensor->bytes : 0;
  return bytes;
}

struct ActivationBuffer {
  BufferHandle DecoderActivations::*handle;
  uint64_t floats;
};

std::array<ActivationBuffer, 9> activation_buffers(const ModelConfig& config, uint64_t rows,
                                                   uint64_t logits_rows) {
  using A = DecoderActivations;
  return {{{&A::residual, rows * config.width},
           {&A::projected, rows * config.width},
           {&A::query, rows * config.query_width()},
           {&A::key, rows * config.kv_width()},
           {&A::value, rows * config.kv_width()},
           {&A::attended, rows * config.query_width()},
           {&A::gated, rows * config.ffn_width},
           {&A::last, logits_rows * config.width},
           {&A::logits, logits_rows * config.vocab}}};
}

}  // namespace

Result<std::unique_ptr<DecoderModel>> DecoderModel::load(const GgufFile& file,
                                                         const ModelDescription& description,
                                                         Backend& backend,
                                                         const LoadProgress& progress) {
  const ModelConfig& config = description.config;
  const ModelTensors& tensors = description.tensors;
  TROUPE_ASSERT(tensors.layers.size() == config.layers, tensors.layers.size(), config.layers);
  std::unique_ptr<DecoderModel> model(new DecoderModel(config, backend));
  Uploader uploader(file, backend, progress, upload_bytes(tensors));
  model->layers_.resize(config.layers);
  for (uint32_t l = 0; l < config.layers; ++l) {
    const LayerTensors& from = tensors.layers[l];
    Layer& layer = model->layers_[l];
    uploader.upload(from.attn_norm, layer.attn_norm);
    uploader.upload(from.attn_q, layer.query);
    uploader.upload(from.attn_k, layer.key);
    uploader.upload(from.attn_v, layer.value);
    uploader.upload(from.attn_output, layer.output);
    uploader.upload(from.ffn_norm, layer.ffn_norm);
    uploader.upload(from.ffn_gate, layer.gate);
    uploader.upload(from.ffn_up, layer.up);
    uploader.upload(from.ffn_down, layer.down);
    uploader.upload(from.attn_q_bias, layer.query_bias);
    uploader.upload(from.attn_k_bias, layer.key_bias);
    uploader.upload(from.attn_v_bias, layer.value_bias);
    uploader.upload(from.attn_q_norm, layer.query_norm);
    uploader.upload(from.attn_k_norm, layer.key_norm);
    uploader.upload(from.attn_post_norm, layer.attn_post_norm);
    uploader.upload(from.ffn_post_norm, layer.ffn_post_norm);
  }
  uploader.upload(tensors.output_norm, model->final_norm_);
  uploader.upload(tensors.output, model->head_);
  TROUPE_RETURN_IF_ERROR(uploader.status());
  // A tied output was packed from the same bytes; embeddings are looked up in the file's.
  TROUPE_ASSIGN_OR_RETURN(model->embedding_,
                          backend.upload_embedding(uploader.source(*tensors.token_embd)));
  TROUPE_RETURN_IF_ERROR(model->make_ropes());
  return model;
}

Status DecoderModel::make_ropes() {
  RopeParameters rope{.head_dim = config_.head_size,
                      .rotated_dim = config_.rope_dims,
                      .pairs = config_.rope_pairs,
                      .base = static_cast<double>(config_.rope_freq_base),
                      .linear_scale = static_cast<double>(config_.rope_linear_scale),
                      .frequency_factors = config_.rope_factors};
  TROUPE_ASSIGN_OR_RETURN(rope_, backend_.make_rope(rope));
  if (config_.window == 0) return ok_status();
  rope.base = static_cast<double>(config_.window_rope_freq_base);
  rope.linear_scale = 1.0;
  rope.frequency_factors = {};
  TROUPE_ASSIGN_OR_RETURN(window_rope_, backend_.make_rope(rope));
  return ok_status();
}

Result<DecoderActivations> DecoderModel::make_activations(uint32_t rows_max,
                                                          uint32_t logits_rows_max) const {
  TROUPE_ASSERT(rows_max > 0 && logits_rows_max > 0, rows_max, logits_rows_max);
  DecoderActivations made;
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

void DecoderModel::release(const DecoderActivations& activations) const {
  for (const auto& [handle, floats] : activation_buffers(config_, 1, 1))
    if ((activations.*handle).value != 0) backend_.release(activations.*handle);
}

uint64_t DecoderModel::activation_bytes(const ModelConfig& config, uint32_t rows_max,
                                        uint32_t logits_rows_max) {
  uint64_t floats = 0;
  for (const auto& buffer : activation_buffers(config, rows_max, logits_rows_max))
    floats += buffer.floats;
  return floats * sizeof(float);
}

void DecoderModel::forward(const Batch& batch, const DecoderKv& kv, const DecoderActivations& a,
                           const LayerStored& stored) const {
  const auto rows = static_cast<uint32_t>(batch.tokens.size());
  TROUPE_ASSERT(rows > 0 && rows <= a.rows_max, rows, a.rows_max);
  const Rows residual{a.residual, 0, rows, config_.width};
  const std::array ropes{rope_, window_rope_};

  backend_.set_batch(batch, std::span(ropes).first(config_.window == 0 ? 1 : 2));
  backend_.embed(embedding_, residual);
  if (config_.embedding_scale != 1.0F) backend_.scale(residual, config_.embedding_scale);
  for (uint32_t l = 0; l < config_.layers; ++l) {
    const Layer& layer = layers_[l];
    attend(l, kv, rows, a, stored);
    add_product(layer.output, {a.attended, 0, rows, config_.query_width()}, layer.attn_post_norm,
                a);
    const Rows gated{a.gated, 0, rows, config_.ffn_width};
    backend_.gated_linear(layer.gate, layer.up, {residual, layer.ffn_norm, config_.rms_epsilon},
                          config_.activation, gated);
    add_product(layer.down, gated, layer.ffn_post_norm, a);
  }
}

void DecoderModel::attend(uint32_t index, const DecoderKv& kv, uint32_t rows,
                          const DecoderActivations& a, const LayerStored& stored) const {
  const Layer& layer = layers_[index];
  const Rows residual{a.residual, 0, rows, config_.width};
  const Rows query{a.query, 0, rows, config_.query_width()};
  const Rows key{a.key, 0, rows, config_.kv_width()};
  const Rows value{a.value, 0, rows, config_.kv_width()};
  backend_.linear(std::array{layer.query, layer.key, layer.value},
                  {residual, layer.attn_norm, config_.rms_epsilon}, std::array{query, key, value});
  if (layer.query_bias.value != 0) {
    backend_.add_vector(query, layer.query_bias);
    backend_.add_vector(key, layer.key_bias);
    backend_.add_vector(value, layer.value_bias);
  }
  if (layer.query_norm.value != 0) {
    norm_heads(query, layer.query_norm);
    norm_heads(key, layer.key_norm);
  }
  const bool is_apart = kv.windowed.value != 0;
  const KvHandle pool = is_apart && config_.windowed(index) ? kv.windowed : kv.all;
  const AttentionLayer how = attention_layer(index, is_apart);
  backend_.rope_and_store(query, key, value, pool, how);
  if (stored) stored(index);
  backend_.attention(query, pool, how, {a.attended, 0, rows, config_.query_width()});
}

void DecoderModel::add_product(LinearHandle weights, Rows in, VectorHandle post_norm,
                               const DecoderActivations& a) const {
  const Rows residual{a.residual, 0, in.rows, config_.width};
  if (post_norm.value == 0) {
    backend_.linear_add(weights, in, residual);
    return;
  }
  const Rows projected{a.projected, 0, in.rows, config_.width};
  backend_.linear(std::array{weights}, in, std::array{projected});
  backend_.add_normed(residual, projected, post_norm, config_.rms_epsilon);
}

void DecoderModel::norm_heads(Rows rows, VectorHandle norm) const {
  const uint32_t heads = rows.width / config_.head_size;
  const Rows each{rows.buffer, 0, rows.rows * heads, config_.head_size};
  backend_.rms_norm(each, norm, config_.rms_epsilon, each);
}

// `is_apart`: windowed layers have a pool of their own.
AttentionLayer DecoderModel::attention_layer(uint32_t index, bool is_apart) const {
  const bool windowed = config_.windowed(index);
  return {.index = is_apart ? config_.alike_before(index) : index,
          .rope = windowed ? window_rope_ : rope_,
          .window = windowed ? config_.window : 0,
          .scale = config_.attention_scale};
}

void DecoderModel::final_rows(std::span<const uint32_t> rows, const DecoderActivations& a) const {
  const auto count = static_cast<uint32_t>(rows.size());
  TROUPE_ASSERT(count > 0 && count <= a.logits_rows_max, count, a.logits_rows_max);
  const Rows last{a.last, 0, count, config_.width};
  backend_.gather_rows({a.residual, 0, a.rows_max, config_.width}, rows, last);
  backend_.rms_norm(last, final_norm_, config_.rms_epsilon, last);
}

void DecoderModel::logits(std::span<const uint32_t> rows, const DecoderActivations& a) const {
  final_rows(rows, a);
  const auto count = static_cast<uint32_t>(rows.size());
  const Rows last{a.last, 0, count, config_.width};
  backend_.linear(std::array{head_}, last, std::array{Rows{a.logits, 0, count, config_.vocab}});
}

}  // namespace troupe
