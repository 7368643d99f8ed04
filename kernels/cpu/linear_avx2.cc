// The linear layer for AVX2: which kernel serves which call.

#include "kernels/cpu/linear_avx2_blocks.h"
#include "kernels/cpu/linear_avx2_byte.h"
#include "kernels/cpu/linear_avx2_six.h"
#include "kernels/cpu/linear_avx2_words.h"

namespace troupe {
namespace {

// Up to this number of rows weights are used as they stand; above, they are expanded to words
// first.
constexpr uint32_t kFewRows = 4;
static_assert(kFewRows <= kDigitRowsMax);

// Few rows: weights are used as they stand.
void packed_half(const Half& half) {
  switch (half.call.weights.format) {
    case LinearFormat::kNibble:
      return block_half<LinearFormat::kNibble>(half);
    case LinearFormat::kFive:
      return block_half<LinearFormat::kFive>(half);
    case LinearFormat::kFiveCentred:
      return block_half<LinearFormat::kFiveCentred>(half);
    case LinearFormat::kSix:
      return six_half(half);
    default:
      return byte_half(half);
  }
}

void word_group(const LinearCall& call, uint32_t group) {
  const LinearWeights& w = call.weights;
  const uint8_t* packed = w.data + group * w.group_bytes;
  switch (w.format) {
    case LinearFormat::kNibble:
      expand_blocks<LinearFormat::kNibble>(packed, w.chunks, call.scratch);
      break;
    case LinearFormat::kFive:
      expand_blocks<LinearFormat::kFive>(packed, w.chunks, call.scratch);
      break;
    case LinearFormat::kFiveCentred:
      expand_blocks<LinearFormat::kFiveCentred>(packed, w.chunks, call.scratch);
      break;
    case LinearFormat::kSix:
      expand_sixes(packed, w.chunks, call.scratch);
      return word_rows_of_group<SixWords>(call, call.scratch, group);
    case LinearFormat::kByte:
      expand_bytes(packed, w.chunks, call.scratch);
      return word_rows_of_group<ByteWords>(call, call.scratch, group);
    default:
      return word_rows_of_group<PlainWords>(call, packed, group);
  }
  word_rows_of_group<PlainWords>(call, call.scratch, group);
}

}  // namespace

void linear_avx2(const LinearCall& call) {
  const LinearFormat format = call.weights.format;
  const bool few = format != LinearFormat::kWord && call.activations.rows <= kFewRows;
  for (uint32_t g = call.group_begin; g < call.group_end; ++g) {
    if (!few) {
      word_group(call, g);
      continue;
    }
    for (uint32_t h = 0; h < 2; ++h) packed_half({call, g, h});
  }
}

}  // namespace troupe
