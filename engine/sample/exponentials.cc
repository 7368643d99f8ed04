#include "engine/sample/exponentials.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"
#include "engine/sample/exact_math.h"
#include "kernels/cpu/isa.h"

namespace troupe {
namespace {

constexpr size_t kLanes = 8;
using Double8 = double __attribute__((vector_size(64)));
using Int64x8 = int64_t __attribute__((vector_size(64)));
using Float8 = float __attribute__((vector_size(32)));

// Eight logits as doubles; those after the last one are -infinity.
[[gnu::always_inline]] inline void load8(std::span<const float> logits, size_t at, Double8& lanes) {
  if (at + kLanes <= logits.size()) {
    Float8 floats;
    std::memcpy(&floats, logits.data() + at, sizeof floats);
    lanes = __builtin_convertvector(floats, Double8);
    return;
  }
  lanes = Double8{} - __builtin_inf();
  for (size_t i = at; i < logits.size(); ++i) lanes[i - at] = static_cast<double>(logits[i]);
}

// The bodies are compiled once for each instruction set, by the functions that they are inlined in.
struct WeighArguments {
  std::span<const float> logits;
  double peak, temperature;
  std::span<double> weights;
};

[[gnu::always_inline]] inline void weigh_body(const WeighArguments& of) {
  for (size_t i = 0; i < of.logits.size(); i += kLanes) {
    Double8 lanes;
    load8(of.logits, i, lanes);
    lanes = (lanes - of.peak) / of.temperature;
    exp_nonpositive<Double8, Int64x8>(lanes);
    const size_t count = std::min(kLanes, of.logits.size() - i);
    std::memcpy(&of.weights[i], &lanes, count * sizeof(double));
  }
}

[[gnu::always_inline]] inline double sum_body(std::span<const float> logits, double peak) {
  Double8 sums = {};
  for (size_t i = 0; i < logits.size(); i += kLanes) {
    Double8 lanes;
    load8(logits, i, lanes);
    lanes -= peak;
    exp_nonpositive<Double8, Int64x8>(lanes);
    sums += lanes;
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

[[gnu::target("avx512f,avx512dq")]] void weigh_avx512(const WeighArguments& of) {
  weigh_body(of);
}
[[gnu::target("avx2")]] void weigh_avx2(const WeighArguments& of) {
  weigh_body(of);
}
void weigh_plain(const WeighArguments& of) {
  weigh_body(of);
}

[[gnu::target("avx512f,avx512dq")]] double sum_avx512(std::span<const float> logits, double peak) {
  return sum_body(logits, peak);
}
[[gnu::target("avx2")]] double sum_avx2(std::span<const float> logits, double peak) {
  return sum_body(logits, peak);
}
double sum_plain(std::span<const float> logits, double peak) {
  return sum_body(logits, peak);
}

}  // namespace

void weigh(std::span<const float> logits, float peak, float temperature,
           std::span<double> weights) {
  TROUPE_ASSERT(logits.size() == weights.size(), logits.size(), weights.size());
  const WeighArguments arguments{logits, static_cast<double>(peak),
                                 static_cast<double>(temperature), weights};
  if (supports(CpuIsa::kAvx512)) return weigh_avx512(arguments);
  if (supports(CpuIsa::kAvx2)) return weigh_avx2(arguments);
  weigh_plain(arguments);
}

double sum_exponentials(std::span<const float> logits, float peak) {
  const auto top = static_cast<double>(peak);
  if (supports(CpuIsa::kAvx512)) return sum_avx512(logits, top);
  if (supports(CpuIsa::kAvx2)) return sum_avx2(logits, top);
  return sum_plain(logits, top);
}

}  // namespace troupe
