#include "kernels/cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace troupe {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"scalar", "avx2", "avx512", "avx512vnni",
                                                    "amx"};

struct Registers {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zeros for a leaf that the processor does not have.
Registers cpuid(uint32_t leaf, uint32_t subleaf) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool all_bits(uint64_t value, uint64_t wanted) {
  return (value & wanted) == wanted;
}

// Which register states the operating system saves; 0 when it saves none beyond SSE.
uint64_t saved_states() {
  constexpr uint32_t kOsxsave = 1U << 27U;
  if (!all_bits(cpuid(1, 0).ecx, kOsxsave)) return 0;
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return uint64_t{high} << 32U | low;
}

// Linux gives tile registers only to processes that ask (Documentation/arch/x86/xstate.rst).
bool request_tile_permission() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureXtiledata = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureXtiledata) == 0;
}

// Bits of CPUID leaves 1 and 7: Intel's Software Developer's Manual, volume 2A, CPUID.
CpuIsa best_of_this_machine() {
  const Registers one = cpuid(1, 0);
  const Registers seven = cpuid(7, 0);
  const uint64_t saved = saved_states();
  const bool avx2 = all_bits(saved, 0x6) && all_bits(one.ecx, 1U << 12U | 1U << 28U | 1U << 29U) &&
                    all_bits(seven.ebx, 1U << 5U);
  if (!avx2) return CpuIsa::kScalar;
  constexpr uint32_t kAvx512Bits = 1U << 16U | 1U << 17U | 1U << 30U | 1U << 31U;  // F DQ BW VL
  if (!all_bits(saved, 0xE6) || !all_bits(seven.ebx, kAvx512Bits)) return CpuIsa::kAvx2;
  if (!all_bits(seven.ecx, 1U << 11U)) return CpuIsa::kAvx512;
  constexpr uint32_t kTileBits = 1U << 24U | 1U << 25U;  // AMX-TILE, AMX-INT8
  const bool amx =
      all_bits(saved, 3U << 17U) && all_bits(seven.edx, kTileBits) && request_tile_permission();
  return amx ? CpuIsa::kAmx : CpuIsa::kAvx512Vnni;
}

}  // namespace

std::string_view to_string(CpuIsa isa) {
  return kNames[static_cast<size_t>(isa)];
}

std::optional<CpuIsa> parse_cpu_isa(std::string_view name) {
  for (const CpuIsa isa : kCpuIsas)
    if (to_string(isa) == name) return isa;
  return std::nullopt;
}

CpuIsa detect_best_cpu_isa() {
  // What a processor can does not change; CPUID itself traps in a virtual machine and is slow.
  static const CpuIsa best = best_of_this_machine();
  return best;
}

bool supports(CpuIsa isa) {
  return isa <= detect_best_cpu_isa();
}

}  // namespace troupe
