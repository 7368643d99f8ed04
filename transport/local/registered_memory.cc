#include "transport/local/registered_memory.h"

#include <iterator>

#include "base/assert.h"

namespace troupe {

Status RegisteredMemory::add(std::span<std::byte> memory) {
  if (memory.empty()) return invalid_argument("memory to register is empty");
  const std::lock_guard lock(mutex_);
  const auto next = sizes_.lower_bound(memory.data());
  const bool hits_next = next != sizes_.end() && next->first < memory.data() + memory.size();
  const bool hits_previous =
      next != sizes_.begin() && std::prev(next)->first + std::prev(next)->second > memory.data();
  if (hits_next || hits_previous) {
    return invalid_argument("memory to register overlaps registered memory; register it once");
  }
  sizes_.emplace(memory.data(), memory.size());
  return ok_status();
}

void RegisteredMemory::remove(std::span<std::byte> memory) {
  const std::lock_guard lock(mutex_);
  const auto found = sizes_.find(memory.data());
  TROUPE_ASSERT(found != sizes_.end() && found->second == memory.size(), memory.size());
  sizes_.erase(found);
}

template <class Range>
Status RegisteredMemory::check_all(std::span<const Range> ranges) const {
  const std::lock_guard lock(mutex_);
  const std::byte* begin = nullptr;  // the registered memory that held the last range
  const std::byte* end = nullptr;
  for (const Range& range : ranges) {
    const std::byte* first = range.data();
    if (first >= begin && first < end && range.size() <= static_cast<size_t>(end - first)) continue;
    auto found = sizes_.upper_bound(first);
    if (found != sizes_.begin()) {
      --found;
      begin = found->first;
      end = begin + found->second;
      if (first < end && range.size() <= static_cast<size_t>(end - first)) continue;
    }
    return invalid_argument("a range of " + std::to_string(range.size()) +
                            " bytes lies outside the registered memory; register it first");
  }
  return ok_status();
}

Status RegisteredMemory::check(std::span<const std::span<const std::byte>> ranges) const {
  return check_all(ranges);
}

Status RegisteredMemory::check(std::span<const std::span<std::byte>> ranges) const {
  return check_all(ranges);
}

}  // namespace troupe
