#include "base/os/memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace troupe {
namespace {

std::optional<uint64_t> read_number(const char* path) {
  std::ifstream file(path);
  uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;  // absent, or "max"
}

std::optional<uint64_t> kernel_estimate() {
  std::ifstream file("/proc/meminfo");
  std::string key, unit;
  uint64_t kib = 0;
  while (file >> key >> kib) {
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(file, unit);
  }
  return std::nullopt;
}

}  // namespace

Result<uint64_t> available_memory_bytes() {
  std::optional<uint64_t> available = kernel_estimate();
  const auto limit = read_number("/sys/fs/cgroup/memory.max");
  const auto used = read_number("/sys/fs/cgroup/memory.current");
  if (limit && used) {
    const uint64_t rest = *limit > *used ? *limit - *used : 0;
    available = std::min(available.value_or(rest), rest);
  }
  if (!available) {
    return Status{StatusCode::kUnavailable,
                  "the available memory cannot be read from /proc/meminfo; set --kv-memory"};
  }
  return *available;
}

}  // namespace troupe
