#pragma once
#include <cstdint>

namespace troupe {

// 64 unpredictable bits from the operating system; for secrets and incarnations, never for
// sampling.
[[nodiscard]] uint64_t entropy_u64();

}  // namespace troupe
