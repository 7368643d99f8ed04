#include "tests/unit/kernels/linear/emulated_tiles.h"

#include "kernels/cpu/linear_amx_body.h"

namespace troupe {
namespace {

// Tiles of 16 rows of 64 bytes, as TDPBSSD and TDPBSUD see them: row m of A holds 16 quads of
// inputs, row q of B quad q of 16 outputs.
struct EmulatedTiles {
  static inline uint8_t tile[8][kTileBytes];

  static void begin() { __builtin_memset(tile, 0x5A, sizeof tile); }
  static void end() { __builtin_memset(tile, 0x5A, sizeof tile); }
  template <int T>
  static void zero() {
    __builtin_memset(tile[T], 0, kTileBytes);
  }
  template <int T>
  static void load(const int8_t* from) {
    __builtin_memcpy(tile[T], from, kTileBytes);
  }
  template <int T>
  static void store(int32_t* to) {
    __builtin_memcpy(to, tile[T], kTileBytes);
  }
  template <int To, int A, int B>
  static void dot_signed() {
    dot(tile[To], tile[A], tile[B], true);
  }
  template <int To, int A, int B>
  static void dot_unsigned() {
    dot(tile[To], tile[A], tile[B], false);
  }

 private:
  static void dot(uint8_t* to, const uint8_t* a, const uint8_t* b, bool b_signed) {
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 16; ++n) {
        int32_t before;
        __builtin_memcpy(&before, to + m * 64 + n * 4, sizeof before);
        int64_t sum = before;
        for (int k = 0; k < 64; ++k) {
          const uint8_t byte = b[k / 4 * 64 + n * 4 + k % 4];
          sum += static_cast<int8_t>(a[m * 64 + k]) *
                 (b_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte});
        }
        // The instruction wraps silently; here a sum that does not fit stands out.
        const int32_t result =
            sum == static_cast<int32_t>(sum) ? static_cast<int32_t>(sum) : 0x5A5A5A5A;
        __builtin_memcpy(to + m * 64 + n * 4, &result, 4);
      }
  }
};

}  // namespace

void linear_emulated_tiles(const LinearCall& call) {
  linear_tiles<EmulatedTiles>(call);
}

}  // namespace troupe
