#include "base/os/thread_time.h"

#include <ctime>

#include "base/assert.h"

namespace troupe {

Duration thread_cpu_time() {
  timespec now{};
  TROUPE_ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
  return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

}  // namespace troupe
