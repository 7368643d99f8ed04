#include "bench/limits/peaks.h"

#include <immintrin.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "kernels/cpu/isa.h"

namespace troupe::limits {

namespace {

constexpr int kRuns = 5;
constexpr int kPasses = 9;
constexpr uint64_t kRounds = 4'000'000;  // of a loop of products: some 20 ms
constexpr int kChains = 12;  // independent sums, unrolled: more than latency times throughput
constexpr size_t kPassBytesMin = size_t{64} << 20;  // read by one pass, however small its data

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of work(thread) on all threads at once. They start together: the time is from the last
// one's start to the last one's end.
double timed(uint32_t threads, const std::function<void(uint32_t)>& work) {
  std::vector<std::thread> others;
  std::vector<double> begins(threads), ends(threads);
  const auto run = [&](uint32_t t) {
    begins[t] = now_seconds();
    work(t);
    ends[t] = now_seconds();
  };
  for (uint32_t t = 1; t < threads; ++t) others.emplace_back(run, t);
  run(0);
  for (std::thread& other : others) other.join();
  return *std::max_element(ends.begin(), ends.end()) -
         *std::max_element(begins.begin(), begins.end());
}

// --- Products. Statements that claim to read and write the sums keep them alive, and apart: equal
// ones would become one.

#define TROUPE_HIDE(x) asm volatile("" : "+v"(x))

__attribute__((target("avx2,fma"))) void float_fma_avx2() {
  __m256 sums[kChains] = {};
  for (__m256& sum : sums) TROUPE_HIDE(sum);
  __m256 a = _mm256_set1_ps(1.0F), b = _mm256_set1_ps(1e-9F);
  for (uint64_t i = 0; i < kRounds; ++i) {
    TROUPE_HIDE(a);
    TROUPE_HIDE(b);
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_fmadd_ps(a, b, sums[c]);
  }
  for (__m256& sum : sums) TROUPE_HIDE(sum);
}

__attribute__((target("avx512f"))) void float_fma_avx512() {
  __m512 sums[kChains] = {};
  for (__m512& sum : sums) TROUPE_HIDE(sum);
  __m512 a = _mm512_set1_ps(1.0F), b = _mm512_set1_ps(1e-9F);
  for (uint64_t i = 0; i < kRounds; ++i) {
    TROUPE_HIDE(a);
    TROUPE_HIDE(b);
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_fmadd_ps(a, b, sums[c]);
  }
  for (__m512& sum : sums) TROUPE_HIDE(sum);
}

__attribute__((target("avx2"))) void word_pairs_avx2() {
  __m256i sums[kChains] = {};
  for (__m256i& sum : sums) TROUPE_HIDE(sum);
  __m256i a = _mm256_set1_epi16(1), b = _mm256_set1_epi16(2);
  for (uint64_t i = 0; i < kRounds; ++i) {
    TROUPE_HIDE(a);
    TROUPE_HIDE(b);
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(a, b));
  }
  for (__m256i& sum : sums) TROUPE_HIDE(sum);
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) void word_pairs_vnni() {
  __m512i sums[kChains] = {};
  for (__m512i& sum : sums) TROUPE_HIDE(sum);
  __m512i a = _mm512_set1_epi16(1), b = _mm512_set1_epi16(2);
  for (uint64_t i = 0; i < kRounds; ++i) {
    TROUPE_HIDE(a);
    TROUPE_HIDE(b);
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_dpwssd_epi32(sums[c], a, b);
  }
  for (__m512i& sum : sums) TROUPE_HIDE(sum);
}

__attribute__((target("avx2"))) void byte_quads_avx2() {
  __m256i sums[kChains] = {};
  for (__m256i& sum : sums) TROUPE_HIDE(sum);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i a = _mm256_set1_epi8(1), b = _mm256_set1_epi8(2);
  for (uint64_t i = 0; i < kRounds; ++i) {
    TROUPE_HIDE(a);
    TROUPE_HIDE(b);
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c)
      sums[c] = _mm256_add_epi32(sums[c], _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
  }
  for (__m256i& sum : sums) TROUPE_HIDE(sum);
}

__attribute__((target("avx512f,avx512bw,avx512vnni"))) void byte_quads_vnni() {
  __m512i sums[kChains] = {};
  for (__m512i& sum : sums) TROUPE_HIDE(sum);
  __m512i a = _mm512_set1_epi8(1), b = _mm512_set1_epi8(2);
  for (uint64_t i = 0; i < kRounds; ++i) {
    TROUPE_HIDE(a);
    TROUPE_HIDE(b);
#pragma GCC unroll 12
    for (int c = 0; c < kChains; ++c) sums[c] = _mm512_dpbusd_epi32(sums[c], a, b);
  }
  for (__m512i& sum : sums) TROUPE_HIDE(sum);
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

constexpr uint64_t kTileRounds = kRounds / 20;

__attribute__((target("amx-tile,amx-int8"))) void byte_tiles_amx() {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = 64;
    config.rows[t] = 16;
  }
  // GCC 12 would drop the stores to the configuration.
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (uint64_t i = 0; i < kTileRounds; ++i) {
    _tile_dpbusd(0, 4, 5);
    _tile_dpbusd(1, 4, 5);
    _tile_dpbusd(2, 4, 5);
    _tile_dpbusd(3, 4, 5);
  }
  _tile_release();
}

struct Loop {
  void (*run)();
  double operations;  // of one call
};

// The widest loop of the unit that this machine runs; null where it has none.
Loop loop_of(Unit unit) {
  const double products = static_cast<double>(kRounds) * kChains * 2;
  const bool wide = supports(CpuIsa::kAvx512), vnni = supports(CpuIsa::kAvx512Vnni);
  switch (unit) {
    case Unit::kFloat:
      if (wide) return {float_fma_avx512, products * 16};
      return {supports(CpuIsa::kAvx2) ? float_fma_avx2 : nullptr, products * 8};
    case Unit::kWords:
      if (vnni) return {word_pairs_vnni, products * 32};
      return {supports(CpuIsa::kAvx2) ? word_pairs_avx2 : nullptr, products * 16};
    case Unit::kBytes:
      if (vnni) return {byte_quads_vnni, products * 64};
      return {supports(CpuIsa::kAvx2) ? byte_quads_avx2 : nullptr, products * 32};
    case Unit::kByteTile:
      return {supports(CpuIsa::kAmx) ? byte_tiles_amx : nullptr,
              static_cast<double>(kTileRounds) * 4 * 2 * 16 * 16 * 64};
  }
  return {};
}

// --- Reading.

__attribute__((target("avx512f"))) void read_avx512(const std::byte* data, size_t bytes) {
  __m512i sums[4] = {};
  for (size_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j)
      sums[j] = _mm512_or_si512(sums[j], _mm512_load_si512(data + i + 64 * j));
  }
  for (__m512i& sum : sums) TROUPE_HIDE(sum);
}

__attribute__((target("avx2"))) void read_avx2(const std::byte* data, size_t bytes) {
  __m256i sums[8] = {};
  for (size_t i = 0; i < bytes; i += 256) {
#pragma GCC unroll 8
    for (size_t j = 0; j < 8; ++j) {
      const auto* at = reinterpret_cast<const __m256i*>(data + i + 32 * j);
      sums[j] = _mm256_or_si256(sums[j], _mm256_load_si256(at));
    }
  }
  for (__m256i& sum : sums) TROUPE_HIDE(sum);
}

void read_plain(const std::byte* data, size_t bytes) {
  uint64_t sum = 0;
  for (size_t i = 0; i < bytes; i += 8) sum |= *reinterpret_cast<const uint64_t*>(data + i);
  asm volatile("" : : "r"(sum));
}

#undef TROUPE_HIDE

void read_all(const std::byte* data, size_t bytes) {
  if (supports(CpuIsa::kAvx512)) return read_avx512(data, bytes);
  if (supports(CpuIsa::kAvx2)) return read_avx2(data, bytes);
  read_plain(data, bytes);
}

}  // namespace

std::string_view name_of(Unit unit) {
  switch (unit) {
    case Unit::kFloat:
      return "fp32 fma";
    case Unit::kWords:
      return "int16 pairs";
    case Unit::kBytes:
      return "int8 quads";
    case Unit::kByteTile:
      return "int8 tiles";
  }
  return "";
}

bool machine_has(Unit unit) {
  return loop_of(unit).run != nullptr;
}

double peak_rate(Unit unit, uint32_t threads) {
  const Loop loop = loop_of(unit);
  if (loop.run == nullptr) return 0.0;
  double best = 0.0;
  for (int run = 0; run < kRuns; ++run) {
    const double seconds = timed(threads, [&](uint32_t) { loop.run(); });
    best = std::max(best, loop.operations * threads / seconds);
  }
  return best;
}

ReadRate read_rate(size_t bytes, uint32_t threads) {
  bytes = std::max<size_t>(bytes / 256, 1) * 256;
  const size_t turns = std::max<size_t>(1, kPassBytesMin / bytes);
  std::vector<std::unique_ptr<std::byte, void (*)(void*)>> data;
  for (uint32_t t = 0; t < threads; ++t) {
    data.emplace_back(static_cast<std::byte*>(std::aligned_alloc(256, bytes)), std::free);
    if (data.back() == nullptr) return {};
    std::fill_n(data.back().get(), bytes, std::byte{1});  // so that its pages are there
  }
  std::vector<double> rates;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = timed(threads, [&](uint32_t t) {
      for (size_t turn = 0; turn < turns; ++turn) read_all(data[t].get(), bytes);
    });
    if (pass > 0) rates.push_back(static_cast<double>(bytes) * turns * threads / seconds);
  }
  std::sort(rates.begin(), rates.end());
  return {rates.back(), rates[rates.size() / 2]};
}

CacheSizes cache_sizes() {
  const auto size = [](int name) {
    const long bytes = sysconf(name);
    return bytes > 0 ? static_cast<size_t>(bytes) : 0;
  };
  return {size(_SC_LEVEL2_CACHE_SIZE), size(_SC_LEVEL3_CACHE_SIZE)};
}

}  // namespace troupe::limits
