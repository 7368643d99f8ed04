#pragma once
#include <cstdint>

#include "troupe/status.h"

namespace troupe {

// Bytes that this process may still take without pushing others out: the kernel's estimate, or less
// where a control group sets a limit. kUnavailable: neither can be read.
[[nodiscard]] Result<uint64_t> available_memory_bytes();

}  // namespace troupe
