#pragma once
// Zeroed memory at cache-line boundaries.

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace troupe {

// Owns its bytes; empty after a failed or no allocation.
class AlignedBuffer final {
 public:
  AlignedBuffer() = default;
  // Zeroed and aligned to a cache line. Large ones come from fresh pages, which the system zeroes
  // when they are first written: by the thread that fills them. Empty when there is no memory.
  static AlignedBuffer allocate(size_t bytes);

  [[nodiscard]] bool empty() const { return data_ == nullptr; }
  [[nodiscard]] size_t bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> base_;  // what calloc returned
  std::byte* data_ = nullptr;              // the first aligned byte of it
  size_t bytes_ = 0;
};

}  // namespace troupe
