#include "base/ids.h"
#include "kernels/cpu/ops_tables.h"
#include "kernels/ops/ops.h"
#include "kernels/reference/ops_reference.h"

namespace troupe {

static_assert(kKvBlockTokens == kBlockTokens);

const Ops& ops_for(CpuIsa isa) {
  switch (isa) {
    case CpuIsa::kScalar:
      return scalar_ops();
    case CpuIsa::kAvx2:
      return avx2_ops();
    case CpuIsa::kAvx512:
      return avx512_ops();
    case CpuIsa::kAvx512Vnni:
    case CpuIsa::kAmx:
      return avx512vnni_ops();
  }
  return scalar_ops();
}

}  // namespace troupe
