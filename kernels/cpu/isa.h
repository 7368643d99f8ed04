#pragma once
// Which instruction sets this machine offers, decided at run time: one binary runs everywhere.

#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// Each one includes those before it.
enum class CpuIsa {
  kScalar,      // plain C++: the reference of all others
  kAvx2,        // AVX2, FMA and F16C
  kAvx512,      // AVX-512 F, BW, DQ and VL
  kAvx512Vnni,  // and VNNI
  kAmx,         // and AMX TILE and INT8, with the kernel's permission to use tiles
};

inline constexpr CpuIsa kCpuIsas[] = {CpuIsa::kScalar, CpuIsa::kAvx2, CpuIsa::kAvx512,
                                      CpuIsa::kAvx512Vnni, CpuIsa::kAmx};

// "scalar", "avx2", "avx512", "avx512vnni", "amx".
[[nodiscard]] std::string_view to_string(CpuIsa isa);
// The inverse of to_string; nothing for any other name.
[[nodiscard]] std::optional<CpuIsa> parse_cpu_isa(std::string_view name);

// Whether processor and operating system both support it. Asking for kAmx requests the process's
// permission to use tile registers, which threads started later inherit; ask before starting them.
// Thread-safe.
[[nodiscard]] bool supports(CpuIsa isa);

// The largest supported one.
[[nodiscard]] CpuIsa detect_best_cpu_isa();

// Why `isa` is not supported: "this machine lacks amx_tile, amx_int8 for it, and has avx, ...", in
// the names of /proc/cpuinfo. A feature of which the operating system does not save the registers
// counts as lacking.
[[nodiscard]] std::string describe_lack(CpuIsa isa);

}  // namespace troupe
