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
// |W| <= 16383 but for kByte and kSix weights: then 64 products A * W fit an int32.
constexpr int32_t kWeightMax = 16383;
// kByte: |S| <= 32767 and W = (u - 128) * S.
constexpr int32_t kByteScaleMax = 32767;
constexpr int32_t kByteOffset = 128;
// kFiveCentred: W = (u - 16) * S.
constexpr int32_t kFiveOffset = 16;
// kSix: W = V * D with V = (u - 32) * T, |T| <= 128 and |D| <= 32767, or less in rows of more than
// 32,784 inputs, see six_scale_max(). |V| <= 4096, so that 256 products A * V fit an int32
// (2,146,435,072).
constexpr int32_t kSixOffset = 32;
constexpr int32_t kSixFactorMax = 4096;
constexpr int32_t kSixScaleMax = 32767;
constexpr uint32_t kSixSuper = 256;      // inputs that share a D
constexpr uint32_t kSixSuperChunks = 4;  // the same in chunks
constexpr uint32_t kSixSub = 16;         // inputs that share a T

// A group is 16 outputs; a chunk is 64 inputs of a group, and holds for lane n (an output):
enum class LinearFormat : uint8_t {
  // W = u * S + B with u in 0..15. 640 bytes: for each of 2 blocks 4 vectors of 16 x 4 bytes, where
  // byte j of lane n of vector r has input 8r + j in its low and 8r + 4 + j in its high nibble;
  // then
  // for each block S int16[16] and B int16[16].
  kNibble,
  // W = u * S + B with u in 0..31. 768 bytes: the lower four bits of u as in kNibble; then for each
  // block 16 x 4 bytes, where bit v of byte j of lane n is the fifth bit of input 4v + j; then for
  // each block S int16[16] and B int16[16].
  kFive,
  // W = (u - 16) * S with u in 0..31. 704 bytes: as kFive, but for each block S int16[16] alone.
  kFiveCentred,
  // W = (u - 32) * T * D with u in 0..63. 832 bytes: for each of 4 sub-blocks of 16 inputs 2
  // vectors
  // with the lower four bits of u as in kNibble, and one where the bits 2f and 2f + 1 of byte j of
  // lane n are the upper two of input 4f + j; then 16 x 4 bytes, where lane n has T int8 of the
  // sub-blocks 0, 2, 1 and 3. Four chunks are followed by their D int16[16] and 32 bytes of
  // nothing.
  kSix,
  // W = (u - 128) * S with u in 0..255. 1088 bytes: for each of 2 blocks 8 vectors of 16 x 4 bytes,
  // where byte j of lane n of vector r is input 4r + j; then for each block S int16[16].
  kByte,
  // W as int16. 2048 bytes: 16 times (for inputs 4t to 4t + 3) two vectors of 16 x 2 words: lane n
  // of the first has the inputs 4t and 4t + 2, of the second 4t + 1 and 4t + 3.
  kWord,
};

constexpr size_t kNibbleChunkBytes = 640;
constexpr size_t kNibbleScalesAt = 512;
constexpr size_t kFiveChunkBytes = 768;
constexpr size_t kFiveCentredChunkBytes = 704;
constexpr size_t kFiveBitsAt = 512;
constexpr size_t kFiveScalesAt = 640;
constexpr size_t kSixChunkBytes = 832;
constexpr size_t kSixSubBytes = 192;
constexpr size_t kSixBitsAt = 128;  // in a sub-block
constexpr size_t kSixFactorsAt = 768;
constexpr size_t kSixScalesAt = kSixSuperChunks * kSixChunkBytes;  // in four chunks
constexpr size_t kSixSuperBytes = kSixScalesAt + 64;
constexpr size_t kByteChunkBytes = 1088;
constexpr size_t kByteScalesAt = 1024;
constexpr size_t kWordChunkBytes = 2048;

static constexpr size_t linear_chunk_bytes(LinearFormat format) {
  switch (format) {
    case LinearFormat::kNibble:
      return kNibbleChunkBytes;
    case LinearFormat::kFive:
      return kFiveChunkBytes;
    case LinearFormat::kFiveCentred:
      return kFiveCentredChunkBytes;
    case LinearFormat::kSix:
      return kSixChunkBytes;
    case LinearFormat::kByte:
      return kByteChunkBytes;
    case LinearFormat::kWord:
      break;
  }
  return kWordChunkBytes;
}

// Where chunk `chunk` begins in its group. Of the number of chunks: the bytes of a group, where
// kSix has whole fours.
static constexpr size_t linear_chunk_at(LinearFormat format, uint32_t chunk) {
  const size_t scales =
      format == LinearFormat::kSix ? chunk / kSixSuperChunks * (kSixSuperBytes - kSixScalesAt) : 0;
  return chunk * linear_chunk_bytes(format) + scales;
}

// Where S of a block of 32 inputs begins in its chunk, int16 for each of 16 outputs; B, where the
// format has it, follows. Not of kSix and kWord.
static constexpr size_t linear_scales_at(LinearFormat format, uint32_t block) {
  switch (format) {
    case LinearFormat::kFive:
      return kFiveScalesAt + block * 64;
    case LinearFormat::kFiveCentred:
      return kFiveScalesAt + block * 32;
    case LinearFormat::kByte:
      return kByteScalesAt + block * 32;
    default:
      return kNibbleScalesAt + block * 64;
  }
}

// The largest |D| of a kSix row: every sum of `inputs` products A * W stays below 2^53, so that it
// is exact in double.
static constexpr int32_t six_scale_max(uint32_t inputs) {
  constexpr int64_t kProductMax = int64_t{kActivationMax} * kSixFactorMax;
  const int64_t exact = (int64_t{1} << 53) / (kProductMax * inputs);
  return static_cast<int32_t>(exact < kSixScaleMax ? exact : kSixScaleMax);
}

// [group][chunk]; inputs and outputs that only fill up the last chunk and group have W = 0.
struct LinearWeights {
  LinearFormat format;
  const uint8_t* data;  // 64-byte aligned
  size_t group_bytes;   // linear_chunk_at(format, chunks)
  const float* scales;  // one per output, filled up with 0
  uint32_t n_out;
  uint32_t chunks;  // of kSix a multiple of four
};

// Kernels that use weights as they stand need digits. For more rows than this only those of kByte
// weights do, with VNNI, and tiles; all others use words alone.
constexpr uint32_t kDigitRowsMax = 8;

// Inputs that fill up the last chunk are 0.
struct LinearActivations {
  uint32_t rows;
  uint32_t chunks;
  bool has_digits;  // as well as words; else digits and sums are not filled in
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
  // Row m at sums + m * sum_stride: per 16 inputs the sum of A, |sum| <= 32,752. The two of a block
  // of 32 are the factors of a pair of equal words, or of the sub-blocks' T.
  int16_t* sums;
  size_t sum_stride;  // in words: two per block
  float* scales;      // one per row
};

// One call: outputs of the groups [group_begin, group_end), all rows.
struct LinearCall {
  LinearWeights weights;
  LinearActivations activations;
  uint32_t group_begin, group_end;
  float* out;  // of row 0 and the first output of group_begin
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

// Quantise one row of n_in floats into row `row` of `out`, all forms that it says.
void quantize_row_scalar(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row);
void quantize_row_avx2(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row);
void quantize_row_avx512(const float* x, uint32_t n_in, const LinearActivations& out, uint32_t row);

}  // namespace troupe
