#include "kernels/cpu/linear_avx512_body.h"

namespace troupe {

void linear_avx512vnni(const LinearCall& call) {
  linear_groups(call);
}

}  // namespace troupe
