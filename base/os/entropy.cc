#include "base/os/entropy.h"

#include <sys/random.h>

#include "base/assert.h"

namespace troupe {

uint64_t entropy_u64() {
  uint64_t bits = 0;
  const ssize_t got = getrandom(&bits, sizeof(bits), 0);
  TROUPE_ASSERT(got == sizeof(bits), got);  // cannot fail for so few bytes once the system is up
  return bits;
}

}  // namespace troupe
