#pragma once
// What one step of a model has to read and to multiply, and the least time that this takes.

#include <cstdint>

#include "engine/model/model_config.h"

namespace troupe::limits {

// A step of `sequences` that each compute `tokens` new ones with `context` before them, and want
// logits for the last one.
struct Phase {
  uint32_t sequences = 1;
  uint32_t tokens = 1;
  uint32_t context = 0;
};

struct Work {
  double weight_bytes = 0.0;  // read once per step, as stored in the file
  double kv_bytes = 0.0;      // read by attention: once per sequence and step
  double linear_ops = 0.0;    // integer products and sums: two per weight and row
  double float_ops = 0.0;     // of attention: two per element of K and V, query head and row
};

[[nodiscard]] Work work_of(const GgufFile& file, const ModelConfig& config, KvType kv_type,
                           const Phase& phase);

struct Rates {
  double read = 0.0;    // bytes per second
  double linear = 0.0;  // operations per second
  double floats = 0.0;
};

// Reading goes on while products are computed; linear layers and attention share the same units.
[[nodiscard]] double least_seconds(const Work& work, const Rates& rates);

}  // namespace troupe::limits
