#pragma once
// Reads a tokenizer's description out of a GGUF file's metadata.

#include "engine/tokenizer/tokenizer_spec.h"
#include "troupe/status.h"

namespace troupe {

class GgufFile;

// The views in the result point into `file`. kDataLoss: a needed key is missing or of a wrong type.
// Where the file does not say whether prompts begin with bos, the pre-tokeniser's family decides.
[[nodiscard]] Result<TokenizerSpec> tokenizer_spec_of(const GgufFile& file);

}  // namespace troupe
