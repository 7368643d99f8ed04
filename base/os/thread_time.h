#pragma once
#include "base/clock.h"

namespace troupe {

// The processor time that the calling thread has used so far.
[[nodiscard]] Duration thread_cpu_time();

}  // namespace troupe
