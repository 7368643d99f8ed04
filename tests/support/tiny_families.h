#pragma once
// One small random model of each family: what tools/make_decoder_goldens.py evaluates by itself,
// and decoder_families_test by the backends.

#include <string>
#include <vector>

#include "tests/support/gguf_writer.h"

namespace troupe::test {

struct TinyFamily {
  std::string name;  // of its golden file
  TinyModelOptions options;
};

[[nodiscard]] std::vector<TinyFamily> tiny_families();

}  // namespace troupe::test
