// Rates of the linear layers: weights' bytes and products per second, per instruction set and
// number of rows, beside what the machine can read and multiply.
//
//   linear_bench [threads = 2] [inputs = 576] [outputs = 49152] [isa, e.g. avx512vnni, or all]
//                [type, e.g. Q6_K; one of each layout that fits the inputs if absent]
//
// Rates of weights count packed bytes; the share is that of reading plain memory, so with weights
// beyond the caches and few rows it says how near the kernel is to what the machine can do.
// Each figure is the best of several repeats: on a shared machine the best is what the code can do.

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/linear/linear.h"
#include "kernels/reference/float16.h"

namespace troupe {
namespace {

constexpr uint32_t kRows[] = {1, 2, 4, 5, 8, 12, 16, 32, 64, 128, 512};
constexpr int kRepeats = 10;

struct Options {
  uint32_t threads = 2;
  uint32_t inputs = 576;
  uint32_t outputs = 49152;
  const char* isa = "all";
  const char* type = nullptr;
};

// One of each layout.
constexpr WeightType kTypes[] = {WeightType::kQ4_1, WeightType::kQ5_0, WeightType::kQ5_1,
                                 WeightType::kQ6_K, WeightType::kQ8_0, WeightType::kF16};

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Seconds of the best of several repeats of work(thread) on all threads at once.
double best_seconds(uint32_t threads, int repeats, const std::function<void(uint32_t)>& work) {
  double best = 1e9;
  for (int r = 0; r < repeats; ++r) {
    const double start = now_seconds();
    std::vector<std::thread> others;
    for (uint32_t t = 1; t < threads; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& other : others) other.join();
    best = std::min(best, now_seconds() - start);
  }
  return best;
}

// Prints and returns bytes per second, of memory in huge pages as weights are.
double print_read_rate(uint32_t threads) {
  constexpr size_t kBytes = size_t{128} << 20;  // a thread: more than its caches
  const AlignedBuffer data(threads * kBytes);
  const auto share = [&](uint32_t t) { return data.as<uint64_t>() + t * (kBytes / 8); };
  best_seconds(threads, 1, [&](uint32_t t) { std::fill_n(share(t), kBytes / 8, 1); });
  std::vector<uint64_t> sinks(threads * 8);
  const double seconds = best_seconds(threads, kRepeats, [&](uint32_t t) {
    uint64_t sums[8] = {};
    for (size_t i = 0; i < kBytes / 8; i += 8) {
      __builtin_prefetch(share(t) + i + 512);
      for (size_t j = 0; j < 8; ++j) sums[j] += share(t)[i + j];
    }
    for (const uint64_t s : sums) sinks[t * 8] += s;
  });
  const double rate = static_cast<double>(threads * kBytes) / seconds;
  std::printf("reading 128 MB a thread: %.1f GB/s in all%s\n", rate / 1e9,
              sinks[0] == 0 ? " (?)" : "");
  return rate;
}

std::vector<uint8_t> random_weights(WeightType type, uint32_t rows, uint32_t inputs) {
  const WeightTypeTraits& traits = traits_of(type);
  std::vector<uint8_t> bytes(size_t{rows} * inputs / traits.block_weights * traits.block_bytes);
  std::mt19937 random(1);
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const auto word = static_cast<uint32_t>(random());
    std::memcpy(&bytes[i], &word, 4);
  }
  const uint16_t scale = f32_to_f16(0.01F);
  // Q6_K has its scale at its end, some others a second one behind the first; F16 is all scales.
  for (size_t at = 0; at < bytes.size(); at += traits.block_bytes) {
    if (type == WeightType::kQ6_K) {
      std::memcpy(&bytes[at + traits.block_bytes - 2], &scale, 2);
      continue;
    }
    std::memcpy(&bytes[at], &scale, 2);
    if (traits.block_bytes >= 4) std::memcpy(&bytes[at + 2], &scale, 2);
  }
  return bytes;
}

// Splits [0, n) at multiples of the group; part t of `threads`.
uint32_t part(uint32_t n, uint32_t t, uint32_t threads) {
  if (t == threads) return n;
  return static_cast<uint32_t>(uint64_t{n} / kLinearGroup * t / threads) * kLinearGroup;
}

void measure_type(WeightType type, const Options& o, double read_rate) {
  const std::vector<uint8_t> bytes = random_weights(type, o.outputs, o.inputs);
  std::unique_ptr<PackedLinear> w;
  const double pack = best_seconds(1, 1, [&](uint32_t) {
    auto created = PackedLinear::create(type, o.outputs, o.inputs);
    w = std::move(created).value();
    best_seconds(o.threads, 1, [&](uint32_t t) {
      const Status status = w->pack_rows(bytes.data(), part(o.outputs, t, o.threads),
                                         part(o.outputs, t + 1, o.threads));
      if (!status.ok()) std::exit(1);
    });
  });
  std::printf("%s %u x %u: %.1f MB, packed in %.1f ms\n", traits_of(type).name.data(), o.outputs,
              o.inputs, static_cast<double>(w->bytes()) / 1e6, pack * 1e3);
  const uint32_t rows_max = *std::max_element(std::begin(kRows), std::end(kRows));
  std::vector<float> x(size_t{rows_max} * o.inputs);
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  for (float& v : x) v = normal(random);
  std::vector<float> out(size_t{rows_max} * o.outputs);
  for (const CpuIsa isa : kCpuIsas) {
    if (!supports(isa) || (o.isa != std::string_view("all") && to_string(isa) != o.isa)) continue;
    for (const uint32_t rows : kRows) {
      if (isa == CpuIsa::kScalar && rows > 1) break;  // minutes
      QuantizedActivations a(rows, o.inputs, isa);
      a.reset(rows, o.inputs, forms_for(*w, rows, isa));
      const double quantize = best_seconds(
          1, kRepeats, [&](uint32_t) { a.quantize_rows(x.data(), o.inputs, 0, rows); });
      const double s = best_seconds(o.threads, kRepeats, [&](uint32_t t) {
        linear(*w, a, part(o.outputs, t, o.threads), part(o.outputs, t + 1, o.threads), out.data(),
               o.outputs);
      });
      const double rate = static_cast<double>(w->bytes_read()) / s;
      std::printf(
          "  %-10s %4u rows: %7.1f GOP/s, weights at %5.1f GB/s (%3.0f %%), quantise %7.2f us\n",
          to_string(isa).data(), rows, 2.0 * o.inputs * o.outputs * rows / s / 1e9, rate / 1e9,
          100 * rate / read_rate, quantize * 1e6);
    }
  }
}

}  // namespace
}  // namespace troupe

int main(int argc, char** argv) {
  troupe::Options o;
  const auto number = [&](int i, uint32_t fallback) {
    uint32_t value = fallback;
    if (argc > i) std::from_chars(argv[i], argv[i] + std::strlen(argv[i]), value);
    return value;
  };
  o.threads = std::max(1U, number(1, o.threads));
  o.inputs = std::max(32U, number(2, o.inputs) / 32 * 32);
  o.outputs = std::max(16U, number(3, o.outputs));
  if (argc > 4) o.isa = argv[4];
  if (argc > 5) o.type = argv[5];
  const double read_rate = troupe::print_read_rate(o.threads);
  for (const troupe::WeightTypeTraits& traits : troupe::kWeightTypes) {
    const bool wanted = o.type != nullptr ? traits.name == o.type
                                          : std::ranges::find(troupe::kTypes, traits.type) !=
                                                std::end(troupe::kTypes);
    if (wanted && o.inputs % traits.block_weights == 0)
      troupe::measure_type(traits.type, o, read_rate);
  }
}
