#pragma once
// The tables of operations by instruction set; ops_for() chooses. Calling a function of a table
// that the machine does not support is an illegal instruction.

#include "kernels/ops/ops.h"

namespace troupe {

[[nodiscard]] const Ops& avx2_ops();
[[nodiscard]] const Ops& avx512_ops();
[[nodiscard]] const Ops& avx512vnni_ops();

}  // namespace troupe
