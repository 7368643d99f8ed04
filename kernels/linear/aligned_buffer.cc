#include "kernels/linear/aligned_buffer.h"

#include <sys/mman.h>

namespace troupe {

AlignedBuffer::AlignedBuffer(size_t bytes)
    : base_(static_cast<std::byte*>(std::calloc(1, bytes + kCacheLineBytes - 1))),
      bytes_(base_ ? bytes : 0) {
  constexpr size_t kHugePageBytes = size_t{2} << 20U;
  if (bytes_ < 2 * kHugePageBytes) return;
  const auto address = reinterpret_cast<uintptr_t>(base_.get());
  const uintptr_t begin = (address + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
  const uintptr_t end = (address + bytes) / kHugePageBytes * kHugePageBytes;
  // Only advice: a system without huge pages, or without free ones, uses small ones.
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace troupe
