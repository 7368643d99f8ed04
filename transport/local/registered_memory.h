#pragma once
// Which memory a node has registered for its bulk lane.

#include <cstddef>
#include <map>
#include <mutex>
#include <span>

#include "troupe/status.h"

namespace troupe {

// Thread-safe.
class RegisteredMemory final {
 public:
  // kInvalidArgument: empty, or overlaps what is registered.
  [[nodiscard]] Status add(std::span<std::byte> memory);
  // Asserts that exactly this was added.
  void remove(std::span<std::byte> memory);
  // kInvalidArgument: some range lies in no registered memory.
  [[nodiscard]] Status check(std::span<const std::span<const std::byte>> ranges) const;
  [[nodiscard]] Status check(std::span<const std::span<std::byte>> ranges) const;

 private:
  template <class Range>
  [[nodiscard]] Status check_all(std::span<const Range> ranges) const;

  mutable std::mutex mutex_;
  std::map<const std::byte*, size_t> sizes_;  // by first byte; disjoint
};

}  // namespace troupe
