#include "engine/model/model_tensors.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/assert.h"
#include "engine/model/printable.h"

namespace troupe {
namespace {

// Hands out the tensors by name, keeps the first error, and knows which tensors nobody asked for.
class TensorBinder final {
 public:
  explicit TensorBinder(const GgufFile& file) : file_(file), used_(file.tensors().size(), false) {}

  const GgufTensor* vector(const std::string& name, uint32_t size) {
    return bind(name, {size, 1}, 1);
  }
  const GgufTensor* matrix(const std::string& name, uint32_t inputs, uint32_t outputs) {
    return bind(name, {inputs, outputs}, 2);
  }

  [[nodiscard]] const Status& status() const { return status_; }

  // Values that other parts read, or that nobody needs.
  void ignore(std::string_view name) {
    if (const GgufTensor* tensor = file_.find_tensor(name); tensor != nullptr) use(tensor);
  }

  [[nodiscard]] Status check_all_used() const {
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      return {StatusCode::kUnsupported,
              file_.name() + ": tensor " + quoted(file_.tensors()[i].name) +
                  " is no part of the llama architecture that this build serves, and leaving it "
                  "out would change the result. Use a plain llama-family model."};
    }
    return {};
  }

 private:
  void use(const GgufTensor* tensor) {
    used_[static_cast<size_t>(tensor - file_.tensors().data())] = true;
  }

  const GgufTensor* bind(const std::string& name, std::array<uint64_t, 2> dims, uint32_t rank) {
    const GgufTensor* tensor = file_.find_tensor(name);
    if (tensor == nullptr) {
      if (status_.ok()) status_ = missing_tensor(file_, name);
      return nullptr;
    }
    use(tensor);
    if (tensor->rank == rank && tensor->dims[0] == dims[0] && tensor->dims[1] == dims[1])
      return tensor;
    const std::string wanted =
        std::to_string(dims[0]) + (rank == 2 ? ", " + std::to_string(dims[1]) : std::string());
    if (status_.ok()) {
      status_ = {StatusCode::kDataLoss, file_.name() + ": tensor " + quoted(name) +
                                            " has the shape " + shape_text(*tensor) +
                                            "; the metadata asks for [" + wanted +
                                            "]. Convert the model again, or get another file."};
    }
    return nullptr;
  }

  const GgufFile& file_;
  std::vector<bool> used_;
  Status status_;
};

LayerTensors bind_layer(TensorBinder& binder, const ModelConfig& config, uint32_t layer) {
  const std::string prefix = "blk." + std::to_string(layer) + ".";
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
  // Some old files carry the rotary frequencies per layer; they follow from the metadata.
  binder.ignore(prefix + "attn_rot_embd.weight");
  return t;
}

}  // namespace

Status missing_tensor(const GgufFile& file, std::string_view name) {
  return {StatusCode::kDataLoss, file.name() + ": tensor " + quoted(name) +
                                     " is missing from the file's " +
                                     std::to_string(file.tensors().size()) +
                                     " tensors. Convert the model again, or get another file."};
}

Result<ModelTensors> bind_tensors(const GgufFile& file, const ModelConfig& config) {
  TensorBinder binder(file);
  ModelTensors tensors;
  tensors.token_embd = binder.matrix("token_embd.weight", config.width, config.vocab);
  tensors.output_norm = binder.vector("output_norm.weight", config.width);
  tensors.output = config.tied_output ? tensors.token_embd
                                      : binder.matrix("output.weight", config.width, config.vocab);
  for (uint32_t layer = 0; layer < config.layers && binder.status().ok(); ++layer)
    tensors.layers.push_back(bind_layer(binder, config, layer));
  TROUPE_RETURN_IF_ERROR(binder.status());
  binder.ignore("rope_freqs.weight");
  TROUPE_RETURN_IF_ERROR(binder.check_all_used());
  return tensors;
}

}  // namespace troupe
