#include "base/assert.h"

#include <glog/logging.h>

#include <cstdlib>

namespace troupe {

void assertion_failed(const char* condition, const char* names, const std::string& values,
                      const char* file, int line) {
  LOG(FATAL) << "assertion failed: " << condition << " [" << names << " = " << values << "] at "
             << file << ":" << line;
  std::abort();
}

}  // namespace troupe
