#include "apps/node/isa_choice.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/os/forked_call.h"
#include "base/philox.h"
#include "kernels/linear/linear.h"
#include "kernels/weight_type.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kPatience{5};
constexpr uint32_t kInputs = 768;  // whole blocks of all types, no whole number of four chunks
constexpr uint32_t kOutputs = 80;
constexpr uint32_t kRowsTried[] = {1, 8, 17, 48};
// One for each packed format.
constexpr WeightType kTypesTried[] = {WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,
                                      WeightType::kQ6_K, WeightType::kQ8_0, WeightType::kF16};
constexpr uint32_t kRowsTimed = 64;
constexpr uint32_t kOutputsTimed = 512;
constexpr int kTimes = 5;

std::unique_ptr<PackedLinear> random_weights(WeightType type, uint32_t outputs) {
  const WeightTypeTraits& traits = traits_of(type);
  std::vector<uint8_t> bytes(size_t{outputs} * kInputs / traits.block_weights * traits.block_bytes);
  // Without this bit any two bytes, read as a binary16, are below 2.
  constexpr uint64_t kNoLargeExponents = 0xBFBFBFBFBFBFBFBF;
  for (size_t i = 0; i < bytes.size(); i += sizeof(uint64_t)) {
    const uint64_t eight = philox_u64(1, i, 0) & kNoLargeExponents;
    std::memcpy(&bytes[i], &eight, std::min(sizeof eight, bytes.size() - i));
  }
  auto packed = PackedLinear::pack(type, bytes.data(), outputs, kInputs);
  TROUPE_ASSERT(packed.ok(), packed.status().message());
  return std::move(packed).value();
}

std::vector<float> multiplied(const PackedLinear& weights, const std::vector<float>& x,
                              uint32_t rows, CpuIsa isa) {
  QuantizedActivations quantized(rows, kInputs, isa);
  quantized.reset(rows, kInputs);
  quantized.quantize_rows(x.data(), kInputs, 0, rows);
  std::vector<float> out(size_t{rows} * weights.n_out());
  linear(weights, quantized, 0, weights.n_out(), out.data(), weights.n_out());
  return out;
}

std::vector<float> random_rows(uint32_t rows) {
  std::vector<float> x(size_t{rows} * kInputs);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(philox_uniform(2, i, 0)) * 2.0F - 1.0F;
  return x;
}

bool agree(CpuIsa isa, CpuIsa yardstick) {
  for (const WeightType type : kTypesTried) {
    const auto weights = random_weights(type, kOutputs);
    for (const uint32_t rows : kRowsTried) {
      const std::vector<float> x = random_rows(rows);
      if (multiplied(*weights, x, rows, isa) != multiplied(*weights, x, rows, yardstick))
        return false;
    }
  }
  return true;
}

Duration best_time(const PackedLinear& weights, CpuIsa isa, const Clock& clock) {
  const std::vector<float> x = random_rows(kRowsTimed);
  Duration best = Duration::max();
  for (int i = 0; i < kTimes; ++i) {
    const TimePoint start = clock.now();
    static_cast<void>(multiplied(weights, x, kRowsTimed, isa));
    best = std::min(best, clock.now() - start);
  }
  return best;
}

}  // namespace

Trial try_out(CpuIsa isa, CpuIsa yardstick, const Clock& clock) {
  const auto trial = [&]() -> int {
    if (!agree(isa, yardstick)) return static_cast<int>(Trial::kWrong);
    const auto weights = random_weights(WeightType::kQ4_1, kOutputsTimed);
    const bool faster = best_time(*weights, isa, clock) < best_time(*weights, yardstick, clock);
    return static_cast<int>(faster ? Trial::kFaster : Trial::kSlower);
  };
  const auto result = call_in_fork(trial, kPatience);
  return result ? static_cast<Trial>(*result) : Trial::kDied;
}

Result<CpuIsa> choose_isa(const std::string& name, const Clock& clock) {
  if (name == "auto") {
    const CpuIsa best = detect_best_cpu_isa();
    if (best != CpuIsa::kAmx) return best;
    const bool proven = try_out(best, CpuIsa::kAvx512Vnni, clock) == Trial::kFaster;
    return proven ? best : CpuIsa::kAvx512Vnni;
  }
  const auto isa = parse_cpu_isa(name);
  if (!isa) return invalid_argument("--cpu-features " + name + " is unknown; try auto");
  if (!supports(*isa)) {
    return Status{StatusCode::kUnsupported,
                  "--cpu-features " + name + ": " + describe_lack(*isa) + "; take auto, or " +
                      std::string(to_string(detect_best_cpu_isa())) + " or less"};
  }
  return *isa;
}

uint32_t choose_threads(uint32_t asked) {
  return asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace troupe
