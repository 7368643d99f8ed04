#pragma once
// Which model is it? Workers that compute for one another must hold the same bytes.

#include <string>

#include "engine/model/gguf_file.h"

namespace troupe {

// XXH3 with 128 bits over the whole file, in hex. Equal files have equal digests wherever they lie;
// it tells an honest operator's models apart and is no defence against a forged one. Reads every
// byte, at the speed of memory when the file is in the page cache, which it is filled into on the
// way to the weights' upload anyway.
[[nodiscard]] std::string model_digest(const GgufFile& file);

}  // namespace troupe
