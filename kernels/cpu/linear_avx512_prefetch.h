#pragma once
// How the AVX-512 kernels ask for weights before they use them. The processor's own prefetching
// stops at every page, and loses its way when threads wait for each other between layers.

#ifdef __AVX512BW__  // nothing for a compiler that was not told of it

#include "kernels/cpu/linear_avx512_vectors.h"

namespace troupe {
namespace {

// Asks for the groups behind those that are used, an equal part with every chunk of every pass over
// these: more at once would have others wait. With rows for one pass alone memory is the limit:
// weights are asked for as far ahead as memory is away, in each group.
class NextGroups {
 public:
  // `groups` from `group` on, of which there may be fewer or none; they may be of a later call.
  // Passes are of `pass_rows` rows.
  NextGroups(const LinearCall& call, uint32_t group, uint32_t groups, uint32_t pass_rows)
      : group_bytes_(call.weights.group_bytes) {
    const uint32_t passes = (call.activations.rows + pass_rows - 1) / pass_rows;
    is_stream_ = passes == 1;
    const uint32_t all = (call.weights.n_out + kLinearLanes - 1) / kLinearLanes;
    const uint32_t last = group + groups < all ? group + groups : all;
    if (group >= last) return;
    next_ = call.weights.data + group * group_bytes_;
    end_ = next_ + (last - group) * group_bytes_;
    const size_t times = size_t{passes} * call.weights.chunks;
    part_ = (static_cast<size_t>(end_ - next_) / times + kLineBytes) / kLineBytes * kLineBytes;
  }
  // With a chunk of weights as words.
  void prefetch_part() {
    for (const uint8_t* part_end = next_ + part_; next_ < part_end; next_ += kLineBytes) {
      if (next_ >= end_) return;
      _mm_prefetch(reinterpret_cast<const char*>(next_), _MM_HINT_T1);
    }
  }
  // With a chunk of G groups of packed weights, of which `chunk` is the first one's.
  template <size_t kChunkBytes, int G>
  void prefetch_with(const uint8_t* chunk) {
    if (!is_stream_) return prefetch_part();
#pragma GCC unroll 2
    for (int g = 0; g < G; ++g)
#pragma GCC unroll 32
      for (size_t line = 0; line < kChunkBytes; line += kLineBytes)
        _mm_prefetch(reinterpret_cast<const char*>(chunk + g * group_bytes_ + kStreamBytes + line),
                     _MM_HINT_T0);
  }

 private:
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kStreamBytes = 2560;
  const size_t group_bytes_;
  bool is_stream_;
  const uint8_t* next_ = nullptr;
  const uint8_t* end_ = nullptr;
  size_t part_ = 0;
};

}  // namespace
}  // namespace troupe

#endif  // __AVX512BW__
