#pragma once
// What the kernels of all instruction sets share: the layouts of packed weights and of quantised
// activations, as raw pointers.
//
// Files that are compiled for one instruction set include this header and <immintrin.h> and nothing
// with inline functions: a linker may keep their copy of such a function for the whole program,
// which would then die on a machine without that instruction set.

#include <stddef.h>
#include <stdint.h>

namespace troupe {

// Inputs of one block of the file's formats, and of one chunk: the unit of all layouts here.
constexpr uint32_t kLinearBlock = 32;
constexpr uint32_t kLinearChunk = 64;
constexpr uint32_t kLinearLanes = 16;  // outputs of one group

// Activations are 12 bits: |A| <= 2047, A = 64 * high + low, -32 <= high <= 31, 0 <= low <= 63.
constexpr int32_t kActivationMax = 2047;
constexpr int32_t kActivationDigitBits = 6;
// |W| <= 16383 but for kByte weights: then 64 products A * W fit an int32.
constexpr int32_t kWeightMax = 16383;
// kByte: |S| <= 32767 and W = (u - 128) * S.
constexpr int32_t kByteScaleMax = 32767;
constexpr int32_t kByteOffset = 128;

// A group is 16 outputs; a chunk is 64 inputs of a group, and holds for lane n (an output):
enum class LinearFormat : uint8_t {
  // W = u * S + B with u in 0..15. 640 bytes: for each of 2 blocks 4 vectors of 16 x 4 bytes, where
  // byte j of lane n of vector r has input 8r + j in its low and 8r + 4 + j in its high nibble;
  // then
  // for each block S int16[16] and B int16[16].
  kNibble,
  // W = (u - 128) * S with u in 0..255. 1088 bytes: for each of 2 blocks 8 vectors of 16 x 4 bytes,
  // where byte j of lane n of vector r is input 4r + j; then for each block S int16[16].
  kByte,
  // W as int16. 2048 bytes: 16 times (for inputs 4t to 4t + 3) two vectors of 16 x 2 words: lane n
  // of the first has the inputs 4t and 4t + 2, of the second 4t + 1 and 4t + 3.
  kWord,
};

constexpr size_t kNibbleChunkBytes = 640;
constexpr size_t kNibbleScalesAt = 512;
constexpr size_t kByteChunkBytes = 1088;
constexpr size_t kByteScalesAt = 1024;
constexpr size_t kWordChunkBytes = 2048;

static constexpr size_t linear_chunk_bytes(LinearFormat format) {
  return format == LinearFormat::kNibble ? kNibbleChunkBytes
         : format == LinearFormat::kByte ? kByteChunkBytes
                                         : kWordChunkBytes;
}

// [group][chunk]; inputs and outputs that only fill up the last chunk and group have W = 0.
struct LinearWeights {
  LinearFormat format;
  const uint8_t* data;  // 64-byte aligned
  size_t group_bytes;   // chunks * linear_chunk_bytes(format)
  const float* scales;  // one per output, filled up with 0
  uint32_t n_out;
  uint32_t chunks;
};

// Inputs that fill up the last chunk are 0.
struct LinearActivations {
  uint32_t rows;
  uint32_t chunks;
  // Row m at words + m * word_stride. The four inputs of each quad stand in the order 0, 2, 1, 3,
  // so that a pair of neighbours meets the pairs of kWord.
  int16_t* words;
  size_t word_stride;  // in words
  // The digits of (m, k) at
  //   m / tile_rows * tile_stride + (k / 64 * tile_rows + m % tile_rows) * 64 + k % 64.
  // tile_rows is 1, or 16: then each 1,024 bytes are one tile, which only linear_amx() can read.
  // Both planes stand in one allocation.
  int8_t* high;
  int8_t* low;
  uint32_t tile_rows;
  size_t tile_stride;  // in bytes
  // Row m at sums + m * sum_stride: per block of 32 inputs the sum of A, |sum| <= 65,504, as two
  // int16 that add up to it: the factors of a pair of equal words.
  int16_t* sums;
  size_t sum_stride;  // in words: two per block
  float* scales;      // one per row
};

// One call: outputs of the groups [group_begin, group_end), all rows.
struct LinearCall {
  LinearWeights weights;
  LinearActivations activations;
  uint32_t group_begin, group_end;
  float* out;  // of row 0 and output 0
  size_t out_stride;
  // 64-byte aligned, linear_scratch_bytes() or more; its content means nothing between calls.
  uint8_t* scratch;
};

// Two groups as words: 2 groups x 16 outputs x 64 inputs x 2 bytes a chunk.
static constexpr size_t linear_scratch_bytes(uint32_t chunks) {
  return size_t{chunks} * 4096;
}

// From this number of rows on the AMX kernels are faster than the VNNI ones; activations with fewer
// rows are not laid out in tiles.
constexpr uint32_t kAmxRowsMin = 8;

// Each computes exactly the same. The scalar one is the definition.
void linear_scalar(const LinearCall& call);
void linear_avx2(const LinearCall& call);
void linear_avx512(const LinearCall& call);
void linear_avx512vnni(const LinearCall& call);
// Needs activations in tiles; the caller must hold the process's permission to use AMX.
void linear_amx(const LinearCall& call);

// Quantise one row of n_in floats into row `row` of `out`, all forms.
void quantize_row_scalar(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row);
void quantize_row_avx2(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row);
void quantize_row_avx512(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row);

}  // namespace troupe
