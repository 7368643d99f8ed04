#pragma once

#include <cstdint>

namespace troupe {

// What is applied to the gate of a gated feed-forward layer.
enum class Activation : uint8_t {
  kSilu,      // x / (1 + exp(-x))
  kGeluTanh,  // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
};

}  // namespace troupe
