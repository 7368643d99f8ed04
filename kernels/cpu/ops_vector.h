#pragma once
// The operations of kernels/ops/ops.h over vectors of sixteen floats, once for all instruction
// sets.
//
// `V` is such a vector: a value class with internal linkage, so that the instantiations of one
// file never meet those of another that was compiled for other instructions. For the same reason
// nothing here calls a function of the standard library that could be emitted out of line.
// V::kRows x V::kColumns accumulators fit the registers beside their operands.

#include "kernels/cpu/ops_vector_attention.h"
#include "kernels/cpu/ops_vector_f16.h"
#include "kernels/cpu/ops_vector_int8.h"
#include "kernels/cpu/ops_vector_kv.h"
#include "kernels/cpu/ops_vector_rows.h"
#include "kernels/ops/ops.h"

namespace troupe::ops_vector {

template <class V>
inline constexpr Ops kTable = {
    .rms_norm = rms_norm<V>,
    .add = add<V>,
    .scale = scale<V>,
    .swiglu = swiglu<V>,
    .geglu = geglu<V>,
    .rotate = rotate<V>,
    .rotate_halves = rotate_halves<V>,
    .kv_f16 = {store_key_f16<V>, store_value_f16<V>, attention_f16<V>},
    .kv_int8 = {store_key_int8<V>, store_value_int8<V>, attention_int8<V>},
    .attention_merge = attention_merge<V>,
    .attention_finish = attention_finish<V>,
    .linear_f32 = linear_f32<V>,
};

}  // namespace troupe::ops_vector
