#include "kernels/cpu/isa.h"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

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

enum class Output { kOneEcx, kSevenEbx, kSevenEcx, kSevenEdx };

// Bits of CPUID leaves 1 and 7: Intel's Software Developer's Manual, volume 2A, CPUID. The names
// are those of /proc/cpuinfo.
struct Feature {
  std::string_view name;
  CpuIsa isa;  // the first that needs it
  Output output;
  uint32_t bit;
};
constexpr Feature kFeatures[] = {
    {"avx", CpuIsa::kAvx2, Output::kOneEcx, 28},
    {"avx2", CpuIsa::kAvx2, Output::kSevenEbx, 5},
    {"fma", CpuIsa::kAvx2, Output::kOneEcx, 12},
    {"f16c", CpuIsa::kAvx2, Output::kOneEcx, 29},
    {"avx512f", CpuIsa::kAvx512, Output::kSevenEbx, 16},
    {"avx512bw", CpuIsa::kAvx512, Output::kSevenEbx, 30},
    {"avx512dq", CpuIsa::kAvx512, Output::kSevenEbx, 17},
    {"avx512vl", CpuIsa::kAvx512, Output::kSevenEbx, 31},
    {"avx512_vnni", CpuIsa::kAvx512Vnni, Output::kSevenEcx, 11},
    {"amx_tile", CpuIsa::kAmx, Output::kSevenEdx, 24},
    {"amx_int8", CpuIsa::kAmx, Output::kSevenEdx, 25},
};

uint32_t read_output(Output output) {
  switch (output) {
    case Output::kOneEcx:
      return cpuid(1, 0).ecx;
    case Output::kSevenEbx:
      return cpuid(7, 0).ebx;
    case Output::kSevenEcx:
      return cpuid(7, 0).ecx;
    case Output::kSevenEdx:
      return cpuid(7, 0).edx;
  }
  return 0;
}

// Whether the operating system saves the registers of `isa` (volume 1, XCR0).
bool saves_registers_of(CpuIsa isa, uint64_t saved) {
  switch (isa) {
    case CpuIsa::kScalar:
      return true;
    case CpuIsa::kAvx2:
      return all_bits(saved, 0x6);
    case CpuIsa::kAvx512:
    case CpuIsa::kAvx512Vnni:
      return all_bits(saved, 0xE6);
    case CpuIsa::kAmx:
      return all_bits(saved, 3U << 17U) && request_tile_permission();
  }
  return false;
}

struct Machine {
  std::vector<std::string_view> has, lacks;
  CpuIsa best = CpuIsa::kScalar;
};

Machine look_at_this_machine() {
  Machine machine;
  const uint64_t saved = saved_states();
  bool whole = true;  // nothing lacked up to here: each instruction set includes those before it
  for (const CpuIsa isa : kCpuIsas) {
    for (const Feature& feature : kFeatures) {
      if (feature.isa != isa) continue;
      const bool present = all_bits(read_output(feature.output), 1U << feature.bit) &&
                           saves_registers_of(isa, saved);
      (present ? machine.has : machine.lacks).push_back(feature.name);
      whole = whole && present;
    }
    if (whole) machine.best = isa;
  }
  return machine;
}

// What a processor can does not change; CPUID itself traps in a virtual machine and is slow.
const Machine& this_machine() {
  static const Machine machine = look_at_this_machine();
  return machine;
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names) text.append(text.empty() ? "" : ", ").append(name);
  return text.empty() ? "none" : text;
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
  return this_machine().best;
}

bool supports(CpuIsa isa) {
  return isa <= detect_best_cpu_isa();
}

std::string describe_lack(CpuIsa isa) {
  std::vector<std::string_view> needed;
  for (const Feature& feature : kFeatures) {
    if (feature.isa > isa) continue;
    const auto& lacks = this_machine().lacks;
    if (std::find(lacks.begin(), lacks.end(), feature.name) != lacks.end()) {
      needed.push_back(feature.name);
    }
  }
  return "this machine lacks " + joined(needed) + " for it, and has " + joined(this_machine().has);
}

}  // namespace troupe
