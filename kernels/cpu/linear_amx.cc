#include "kernels/cpu/linear_amx_body.h"

namespace troupe {
namespace {

// Palette 1: eight tiles of 16 rows of 64 bytes. Intel's Software Developer's Manual, volume
// 1, 18.2.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// The compiler's own intrinsics take tile numbers as literal text only, and GCC 12 drops the stores
// to a configuration that is only passed to its intrinsic; so the instructions are spelled here,
// with what they read and write.
struct HardwareTiles {
  // Per call: the configuration belongs to the thread, and a thread without one is cheaper to
  // switch.
  static void begin() {
    const TileConfig config;
    asm volatile("ldtilecfg %0" : : "m"(config));
  }
  static void end() { asm volatile("tilerelease"); }

  template <int T>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  static void load(const int8_t* tile) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(tile), "r"(64L), "i"(T) : "memory");
  }
  template <int T>
  static void store(int32_t* tile) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(tile), "r"(64L), "i"(T) : "memory");
  }
  // Tile To += signed bytes of tile A times signed (unsigned) bytes of tile B.
  template <int To, int A, int B>
  static void dot_signed() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(To), "i"(A), "i"(B));
  }
  template <int To, int A, int B>
  static void dot_unsigned() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(To), "i"(A), "i"(B));
  }
};

}  // namespace

void linear_amx(const LinearCall& call) {
  linear_tiles<HardwareTiles>(call);
}

}  // namespace troupe
