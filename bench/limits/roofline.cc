#include "bench/limits/roofline.h"

#include <algorithm>

namespace troupe::limits {

namespace {

double weights_of(const GgufTensor& tensor) {
  double weights = 1.0;
  for (uint32_t d = 0; d < tensor.rank; ++d) weights *= static_cast<double>(tensor.dims[d]);
  return weights;
}

}  // namespace

Work work_of(const GgufFile& file, const ModelConfig& config, KvType kv_type, const Phase& phase) {
  const MemoryEstimate memory = estimate_memory(file, config, kv_type);
  double weights = 0.0;
  double head = 0.0;
  double unread = 0.0;  // an embedding table that is not the output layer: one row a token
  for (const GgufTensor& tensor : file.tensors()) {
    if (tensor.rank < 2) continue;
    const bool embedding = tensor.name == "token_embd.weight";
    const bool output = tensor.name == "output.weight" || (embedding && config.tied_output);
    if (output) head += weights_of(tensor);
    if (!output && !embedding) weights += weights_of(tensor);
    if (!output && embedding) unread += static_cast<double>(tensor.bytes);
  }
  const double rows = static_cast<double>(phase.sequences) * phase.tokens;
  // Row r of a sequence sees the context and the r + 1 new tokens up to its own.
  const double seen = phase.context + (phase.tokens + 1) / 2.0;
  Work work;
  work.weight_bytes = static_cast<double>(memory.weight_bytes) - unread;
  work.kv_bytes = static_cast<double>(memory.kv_bytes_per_token) * phase.sequences *
                  (phase.context + phase.tokens);
  work.linear_ops = 2.0 * (weights * rows + head * phase.sequences);
  work.float_ops = 4.0 * config.layers * config.heads * config.head_size * seen * rows;
  return work;
}

double least_seconds(const Work& work, const Rates& rates) {
  const double reading = (work.weight_bytes + work.kv_bytes) / rates.read;
  const double computing = work.linear_ops / rates.linear + work.float_ops / rates.floats;
  return std::max(reading, computing);
}

}  // namespace troupe::limits
