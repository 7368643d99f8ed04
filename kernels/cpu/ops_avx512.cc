#include "kernels/cpu/ops_avx512_vector.h"
#include "kernels/cpu/ops_tables.h"
#include "kernels/cpu/ops_vector.h"

namespace troupe {

const Ops& avx512_ops() {
  return ops_vector::kTable<Vector>;
}

}  // namespace troupe
