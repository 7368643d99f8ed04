// What VNNI does better than AVX-512: sums of products of words in one instruction.

#include "kernels/cpu/ops_avx512_vector.h"
#include "kernels/cpu/ops_tables.h"
#include "kernels/cpu/ops_vector_int8.h"

namespace troupe {

const Ops& avx512vnni_ops() {
  static const Ops ops = [] {
    Ops all = avx512_ops();
    all.kv_int8.attention_segment = ops_vector::attention_int8<Vector>;
    return all;
  }();
  return ops;
}

}  // namespace troupe
