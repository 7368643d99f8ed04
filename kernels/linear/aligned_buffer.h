#pragma once
// Zeroed memory at cache-line boundaries.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace troupe {

inline constexpr size_t kCacheLineBytes = 64;

// Owns its bytes; empty when default-constructed, moved from, or when there was no memory.
class AlignedBuffer final {
 public:
  AlignedBuffer() = default;
  // Large ones come from fresh pages, which the system zeroes when they are first written: in the
  // thread that fills them. So they cost nothing here. Very large ones ask for huge pages.
  explicit AlignedBuffer(size_t bytes);

  [[nodiscard]] bool empty() const { return base_ == nullptr; }
  [[nodiscard]] size_t bytes() const { return empty() ? 0 : bytes_; }
  template <class T>
  [[nodiscard]] T* as() const {
    const auto address = reinterpret_cast<uintptr_t>(base_.get());
    return reinterpret_cast<T*>((address + kCacheLineBytes - 1) / kCacheLineBytes *
                                kCacheLineBytes);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> base_;
  size_t bytes_ = 0;
};

}  // namespace troupe
