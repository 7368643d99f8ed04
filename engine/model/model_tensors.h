#pragma once
// Finds the tensors of a model in its file and checks their shapes; part of read_model().

#include <string_view>

#include "engine/model/gguf_file.h"
#include "engine/model/model_config.h"
#include "troupe/status.h"

namespace troupe {

// kDataLoss for an absent tensor or a wrong shape; kUnsupported for a tensor that the llama
// architecture does not have: leaving it out would change the arithmetic silently.
[[nodiscard]] Result<ModelTensors> bind_tensors(const GgufFile& file, const ModelConfig& config);

[[nodiscard]] Status missing_tensor(const GgufFile& file, std::string_view name);

}  // namespace troupe
