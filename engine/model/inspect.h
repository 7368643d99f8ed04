#pragma once
// The text of `troupe inspect`: what is in a GGUF file and what memory serving it will take.

#include <string>

#include "engine/model/gguf_file.h"

namespace troupe {

// Metadata (long values abbreviated), tensors, totals per type, the model's numbers and its memory,
// as several lines of valid UTF-8 that end with a newline. A file whose container is sound but
// whose model cannot be served is described too, with the reason in place of the numbers.
[[nodiscard]] std::string inspect_text(const GgufFile& file);

}  // namespace troupe
