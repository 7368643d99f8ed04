#pragma once
#include <cstdint>

namespace troupe {

// Raises the process's soft limit of open files to `wanted`, or as far as the hard one allows.
// Returns what holds then. Not thread-safe; for the start of a program.
[[nodiscard]] uint64_t raise_open_files(uint64_t wanted);

}  // namespace troupe
