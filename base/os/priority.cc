#include "base/os/priority.h"

#include <sys/resource.h>
#include <unistd.h>

namespace troupe {

bool prefer_this_thread() {
  constexpr int kNice = -10;
  // On Linux this is of the thread, not of the process.
  return ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice) == 0;
}

}  // namespace troupe
