#include "engine/backend/cpu/cpu_backend.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <random>
#include <utility>

#include "engine/backend/reference/reference_backend.h"

namespace troupe::test {
namespace {

CpuIsa best_isa() {
  return detect_best_cpu_isa();
}

std::vector<std::unique_ptr<Backend>> all_backends() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(
      std::make_unique<CpuBackend>(CpuBackendOptions{.threads = 2, .isa = best_isa()}));
  backends.push_back(
      std::make_unique<CpuBackend>(CpuBackendOptions{.threads = 1, .isa = CpuIsa::kScalar}));
  backends.push_back(std::make_unique<ReferenceBackend>(2, best_isa()));
  return backends;
}

std::vector<float> random_floats(size_t count, float magnitude, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> uniform(-magnitude, magnitude);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(engine);
  return values;
}

TensorSource f32_source(const std::vector<float>& values, uint32_t inputs, uint32_t outputs) {
  return {.name = "test.weight",
          .type = WeightType::kF32,
          .inputs = inputs,
          .outputs = outputs,
          .bytes = std::as_bytes(std::span(values))};
}

// Rows of device memory, filled and read through pinned memory as a caller must.
class Device {
 public:
  explicit Device(Backend& backend) : backend_(backend) {}

  Rows rows(uint32_t count, uint32_t width) {
    const auto buffer = backend_.allocate(uint64_t{count} * width * 4, MemoryKind::kDevice);
    BOOST_REQUIRE(buffer.ok());
    return {buffer.value(), 0, count, width};
  }
  Rows rows(uint32_t count, uint32_t width, const std::vector<float>& values) {
    const Rows made = rows(count, width);
    const BufferHandle pinned = pin(made);
    std::memcpy(backend_.host_bytes(pinned).data(), values.data(), values.size() * 4);
    backend_.copy(made.buffer, 0, pinned, 0, values.size() * 4);
    backend_.release(pinned);
    return made;
  }
  std::vector<float> read(const Rows& rows) {
    std::vector<float> values(size_t{rows.rows} * rows.width);
    const BufferHandle pinned = pin(rows);
    backend_.copy(pinned, 0, rows.buffer, 0, values.size() * 4);
    BOOST_REQUIRE(backend_.wait(backend_.record_event(), std::chrono::seconds(1)).ok());
    std::memcpy(values.data(), backend_.host_bytes(pinned).data(), values.size() * 4);
    backend_.release(pinned);
    return values;
  }

 private:
  BufferHandle pin(const Rows& rows) {
    const auto buffer =
        backend_.allocate(uint64_t{rows.rows} * rows.width * 4, MemoryKind::kHostPinned);
    BOOST_REQUIRE(buffer.ok());
    return buffer.value();
  }
  Backend& backend_;
};

void check_close(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  BOOST_REQUIRE_EQUAL(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    BOOST_REQUIRE_SMALL(static_cast<double>(a[i]) - b[i], tolerance);
}

BOOST_AUTO_TEST_CASE(memory_is_zeroed_copied_with_offsets_and_reused_after_release) {
  for (const auto& backend : all_backends()) {
    const BufferHandle a = backend->allocate(256, MemoryKind::kHostPinned).value();
    const BufferHandle b = backend->allocate(256, MemoryKind::kDevice).value();
    const std::span<std::byte> bytes = backend->host_bytes(a);
    BOOST_TEST(bytes.size() == 256U);
    BOOST_TEST(reinterpret_cast<uintptr_t>(bytes.data()) % 64 == 0U);
    for (std::byte value : bytes) BOOST_REQUIRE(value == std::byte{0});
    for (size_t i = 0; i < 256; ++i) bytes[i] = static_cast<std::byte>(i);
    backend->copy(b, 10, a, 100, 50);
    backend->copy(a, 0, b, 0, 64);
    const EventHandle event = backend->record_event();
    BOOST_TEST(backend->query(event).value());
    BOOST_TEST(backend->wait(event, Duration::zero()).ok());
    BOOST_TEST(static_cast<int>(bytes[9]) == 0);
    BOOST_TEST(static_cast<int>(bytes[10]) == 100);
    BOOST_TEST(static_cast<int>(bytes[59]) == 149);
    backend->release(b);
    BOOST_TEST((backend->allocate(16, MemoryKind::kDevice).value() == b));
  }
}

BOOST_AUTO_TEST_CASE(a_large_copy_is_whole_whatever_its_ends_and_touches_nothing_else) {
  constexpr size_t kBytes = 1'000'003;
  for (const auto& backend : all_backends()) {
    const BufferHandle from = backend->allocate(kBytes, MemoryKind::kHostPinned).value();
    const BufferHandle to = backend->allocate(kBytes, MemoryKind::kHostPinned).value();
    const std::span<std::byte> in = backend->host_bytes(from), out = backend->host_bytes(to);
    for (size_t i = 0; i < kBytes; ++i) in[i] = static_cast<std::byte>(1 + i % 251);
    backend->copy(to, 7, from, 5, kBytes - 10);
    BOOST_TEST(backend->wait(backend->record_event(), Duration::zero()).ok());
    const auto ends = std::span(out).first(7);
    BOOST_TEST(std::all_of(ends.begin(), ends.end(), [](std::byte b) { return b == std::byte{}; }));
    BOOST_TEST(std::equal(in.begin() + 5, in.end() - 5, out.begin() + 7));
    for (size_t i = kBytes - 3; i < kBytes; ++i) BOOST_TEST((out[i] == std::byte{}));
  }
}

BOOST_AUTO_TEST_CASE(too_much_memory_is_an_error_that_names_the_bytes) {
  for (const auto& backend : all_backends()) {
    const auto result = backend->allocate(uint64_t{1} << 60, MemoryKind::kDevice);
    BOOST_TEST(!result.ok());
    BOOST_TEST((result.status().code() == StatusCode::kResourceExhausted));
    BOOST_TEST(result.status().message().find("1152921504606846976") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(bad_tensors_are_errors_that_name_them) {
  const std::vector<float> values(64, 1.0F);
  std::vector<float> infinite = values;
  infinite[5] = std::numeric_limits<float>::infinity();
  for (const auto& backend : all_backends()) {
    const auto expect = [&](const Status& status, StatusCode code) {
      BOOST_TEST((status.code() == code), status.message());
      BOOST_TEST(status.message().find("test.weight") != std::string::npos);
    };
    expect(backend->upload_linear(f32_source(values, 64, 2)).status(), StatusCode::kDataLoss);
    expect(backend->upload_vector(f32_source(values, 65, 1)).status(), StatusCode::kDataLoss);
    expect(backend->upload_embedding(f32_source(values, 8, 9)).status(), StatusCode::kDataLoss);
    TensorSource odd = f32_source(values, 48, 1);
    odd.type = WeightType::kQ4_0;
    expect(backend->upload_linear(odd).status(), StatusCode::kUnsupported);
  }
  CpuBackend cpu({.threads = 2, .isa = best_isa()});
  const Status status = cpu.upload_linear(f32_source(infinite, 32, 2)).status();
  BOOST_TEST((status.code() == StatusCode::kDataLoss));
  BOOST_TEST(status.message().find("test.weight") != std::string::npos);
}

// Parts of a source that were released, in order.
class Released {
 public:
  explicit Released(TensorSource& source) : base_(source.bytes.data()) {
    source.release = [this](std::span<const std::byte> part) {
      const std::lock_guard lock(mutex_);
      parts_.emplace_back(static_cast<size_t>(part.data() - base_), part.size());
    };
  }
  std::vector<std::pair<size_t, size_t>> take() {  // (offset, bytes)
    std::sort(parts_.begin(), parts_.end());
    return std::exchange(parts_, {});
  }

 private:
  const std::byte* base_;
  std::mutex mutex_;
  std::vector<std::pair<size_t, size_t>> parts_;
};

BOOST_AUTO_TEST_CASE(an_upload_gives_back_what_it_has_read_a_few_mib_at_a_time) {
  constexpr uint32_t kInputs = 512, kOutputs = 6001;
  constexpr size_t kPartMax = size_t{4} << 20;
  const std::vector<float> values = random_floats(size_t{kInputs} * kOutputs, 1.0F, 1);
  CpuBackend cpu({.threads = 2, .isa = best_isa()});
  TensorSource source = f32_source(values, kInputs, kOutputs);
  Released released(source);
  BOOST_REQUIRE(cpu.upload_linear(source).ok());
  size_t end = 0;
  for (const auto& [offset, bytes] : released.take()) {
    BOOST_TEST(offset == end);
    BOOST_TEST(bytes <= kPartMax + size_t{kLinearGroup} * kInputs * 4);
    end = offset + bytes;
  }
  BOOST_TEST(end == source.bytes.size());
}

BOOST_AUTO_TEST_CASE(an_embedding_table_is_given_back_after_some_lookups) {
  constexpr uint32_t kWidth = 32, kRows = 100;
  const std::vector<float> values = random_floats(size_t{kWidth} * kRows, 1.0F, 1);
  CpuBackend cpu({.threads = 2, .isa = best_isa()});
  TensorSource source = f32_source(values, kWidth, kRows);
  Released released(source);
  const EmbeddingHandle table = cpu.upload_embedding(source).value();
  Device device(cpu);
  const std::vector<TokenId> tokens(kRows, 7);
  std::vector<BlockIndex> blocks;
  for (uint32_t b = 0; b * kBlockTokens < kRows; ++b) blocks.push_back(BlockIndex{b});
  const std::vector<BatchSlice> slices{{0, kRows, 0, blocks}};
  const Rows out = device.rows(kRows, kWidth);
  size_t releases = 0;
  for (int pass = 0; pass < 12; ++pass) {
    cpu.set_batch({.tokens = tokens, .slices = slices}, {});
    cpu.embed(table, out);
    for (const auto& [offset, bytes] : released.take()) {
      BOOST_TEST(offset == 0U);
      BOOST_TEST(bytes == source.bytes.size());
      ++releases;
    }
  }
  BOOST_TEST(releases == 4U);  // 1,200 lookups in steps of 100, every 256 at the earliest
}

BOOST_AUTO_TEST_CASE(row_operations_of_all_backends_follow_their_formulas) {
  constexpr uint32_t kRows = 40, kWidth = 300;  // large enough to be split between threads
  const std::vector<float> x = random_floats(kRows * kWidth, 2.0F, 1);
  const std::vector<float> y = random_floats(kRows * kWidth, 2.0F, 2);
  const std::vector<float> weight = random_floats(kWidth, 1.0F, 3);
  std::vector<float> sums(y), norms(x);
  for (uint32_t r = 0; r < kRows; ++r) {
    double squares = 0.0;
    for (uint32_t i = 0; i < kWidth; ++i) squares += double{x[r * kWidth + i]} * x[r * kWidth + i];
    for (uint32_t i = 0; i < kWidth; ++i)
      norms[r * kWidth + i] =
          static_cast<float>(x[r * kWidth + i] / std::sqrt(squares / kWidth + 1e-5) * weight[i]);
  }
  for (size_t i = 0; i < x.size(); ++i) sums[i] += norms[i];
  for (const auto& backend : all_backends()) {
    Device device(*backend);
    const VectorHandle vector = backend->upload_vector(f32_source(weight, kWidth, 1)).value();
    const Rows a = device.rows(kRows, kWidth, x), b = device.rows(kRows, kWidth, y);
    const Rows out = device.rows(kRows, kWidth);
    backend->rms_norm(a, vector, 1e-5F, out);
    check_close(device.read(out), norms, 2e-6);
    const Rows gathered = device.rows(3, kWidth);
    backend->add_normed(b, a, vector, 1e-5F);
    check_close(device.read(b), sums, 2e-6);
    backend->gather_rows(device.rows(kRows, kWidth, y), std::vector<uint32_t>{39, 0, 7}, gathered);
    BOOST_TEST(device.read(gathered)[0] == y[39 * kWidth]);
    BOOST_TEST(device.read(gathered)[2 * kWidth + 1] == y[7 * kWidth + 1]);
  }
}

BOOST_AUTO_TEST_CASE(several_linear_layers_of_one_input_each_get_their_own_outputs) {
  constexpr uint32_t kInputs = 96, kRows = 5;
  const uint32_t outputs[] = {40, 8, 130};  // no whole numbers of groups
  const std::vector<float> x = random_floats(kRows * kInputs, 1.0F, 4);
  std::vector<std::vector<float>> weights;
  for (uint32_t n : outputs) weights.push_back(random_floats(size_t{n} * kInputs, 1.0F, n));
  for (const auto& backend : all_backends()) {
    Device device(*backend);
    std::vector<LinearHandle> handles;
    std::vector<Rows> outs;
    for (size_t i = 0; i < weights.size(); ++i) {
      handles.push_back(
          backend->upload_linear(f32_source(weights[i], kInputs, outputs[i])).value());
      outs.push_back(device.rows(kRows, outputs[i]));
    }
    BOOST_TEST(backend->weight_bytes() > 0U);
    BOOST_REQUIRE(backend->prepare(kRows).ok());
    backend->linear(handles, device.rows(kRows, kInputs, x), outs);
    for (size_t i = 0; i < weights.size(); ++i) {
      std::vector<float> exact(kRows * outputs[i]);
      for (uint32_t r = 0; r < kRows; ++r)
        for (uint32_t n = 0; n < outputs[i]; ++n) {
          double sum = 0.0;
          for (uint32_t k = 0; k < kInputs; ++k)
            sum += double{x[r * kInputs + k]} * weights[i][n * kInputs + k];
          exact[r * outputs[i] + n] = static_cast<float>(sum);
        }
      // 12-bit activations and 15-bit weights: half a step each over 96 products of +-1.
      check_close(device.read(outs[i]), exact, 0.02);
    }
  }
}

// A gated layer in plain arithmetic, of products that linear() gave.
std::vector<float> gated(Activation activation, const std::vector<float>& gates,
                         const std::vector<float>& ups) {
  std::vector<float> out(gates.size());
  for (size_t i = 0; i < gates.size(); ++i) {
    const double x = gates[i];
    const double inner = std::sqrt(2.0 / 3.14159265358979) * (x + 0.044715 * x * x * x);
    const double active = activation == Activation::kSilu ? x / (1.0 + std::exp(-x))
                                                          : 0.5 * x * (1.0 + std::tanh(inner));
    out[i] = static_cast<float>(active * ups[i]);
  }
  return out;
}

// What is fused gives what its parts give: for each backend by itself, and for both cpu ones, which
// differ in threads and instruction set, to the bit. Few rows and many take different ways.
BOOST_AUTO_TEST_CASE(fused_linear_layers_give_what_their_parts_give) {
  constexpr uint32_t kInputs = 96, kOutputs = 200;  // no whole number of groups
  const std::vector<float> weights = random_floats(kOutputs * kInputs, 1.0F, 1);
  const std::vector<float> others = random_floats(kOutputs * kInputs, 1.0F, 2);
  const std::vector<float> norm = random_floats(kInputs, 1.0F, 3);
  for (const uint32_t rows : {1U, 2U, 3U, 9U, 130U}) {
    const std::vector<float> x = random_floats(rows * kInputs, 3.0F, rows);
    const std::vector<float> y = random_floats(rows * kOutputs, 3.0F, rows + 1);
    std::vector<std::vector<float>> results;
    for (const auto& backend : all_backends()) {
      Device device(*backend);
      const LinearHandle gate =
          backend->upload_linear(f32_source(weights, kInputs, kOutputs)).value();
      const LinearHandle up = backend->upload_linear(f32_source(others, kInputs, kOutputs)).value();
      const VectorHandle vector = backend->upload_vector(f32_source(norm, kInputs, 1)).value();
      BOOST_REQUIRE(backend->prepare(rows).ok());
      const Rows in = device.rows(rows, kInputs, x);
      const Rows normed = device.rows(rows, kInputs);
      backend->rms_norm(in, vector, 1e-5F, normed);
      const Rows gates = device.rows(rows, kOutputs), ups = device.rows(rows, kOutputs);
      backend->linear(std::array{gate, up}, normed, std::array{gates, ups});
      const Rows out = device.rows(rows, kOutputs), again = device.rows(rows, kOutputs);
      backend->linear(std::array{gate, up}, {in, vector, 1e-5F}, std::array{out, again});
      BOOST_TEST((device.read(out) == device.read(gates)));
      BOOST_TEST((device.read(again) == device.read(ups)));

      const Rows sum = device.rows(rows, kOutputs, y);
      backend->linear_add(gate, {in, vector, 1e-5F}, sum);
      std::vector<float> expected = device.read(gates);
      for (size_t i = 0; i < y.size(); ++i) expected[i] += y[i];
      BOOST_TEST((device.read(sum) == expected));

      std::vector<float> result = device.read(sum);
      for (const Activation activation : {Activation::kSilu, Activation::kGeluTanh}) {
        backend->gated_linear(gate, up, {in, vector, 1e-5F}, activation, out);
        const std::vector<float> fused = device.read(out);
        check_close(fused, gated(activation, device.read(gates), device.read(ups)), 1e-3);
        result.insert(result.end(), fused.begin(), fused.end());
      }
      results.push_back(std::move(result));
    }
    BOOST_TEST((results[0] == results[1]), rows << " rows");
  }
}

// Two sequences, one of them in two batches, against attention without any cache.
void check_attention(KvType type, double tolerance) {
  constexpr uint32_t kDim = 24, kKvHeads = 2, kHeads = 6, kTokens = 37, kLayers = 2;
  const std::vector<float> q = random_floats(kTokens * kHeads * kDim, 1.0F, 5);
  const std::vector<float> k = random_floats(kTokens * kKvHeads * kDim, 1.0F, 6);
  const std::vector<float> v = random_floats(kTokens * kKvHeads * kDim, 1.0F, 7);
  std::vector<std::vector<float>> results;
  for (const auto& backend : all_backends()) {
    Device device(*backend);
    const RopeHandle rope =
        backend->make_rope({.head_dim = kDim, .rotated_dim = 16, .base = 10000.0}).value();
    const KvHandle kv = backend
                            ->allocate_kv({.layers = kLayers,
                                           .kv_heads = kKvHeads,
                                           .head_dim = kDim,
                                           .blocks = 8,
                                           .type = type})
                            .value();
    const AttentionLayer layer{
        .index = 1, .rope = rope, .scale = 1.0F / std::sqrt(static_cast<float>(kDim))};
    const KvLayout layout = backend->kv_layout(kv);
    BOOST_TEST(layout.key_bytes == kv_key_bytes(layout.type, kDim));
    BOOST_TEST(layout.block_bytes == kKvHeads * (layout.key_bytes + layout.value_bytes));
    BOOST_TEST(layout.layer_stride == layout.block_bytes);
    BOOST_TEST(layout.block_stride == kLayers * layout.layer_stride);
    std::vector<BlockIndex> blocks = {BlockIndex(5), BlockIndex(2), BlockIndex(7)};
    const std::vector<TokenId> tokens(kTokens, 0);
    std::vector<float> out;
    const auto pass = [&](uint32_t begin, uint32_t end) {
      const uint32_t rows = end - begin;
      const auto part = [&](const std::vector<float>& all, uint32_t width) {
        return device.rows(rows, width, {all.begin() + begin * width, all.begin() + end * width});
      };
      const BatchSlice slice{0, rows, begin, blocks};
      backend->set_batch({.tokens = {tokens.data(), rows}, .slices = {&slice, 1}},
                         std::array{rope});
      const Rows query = part(q, kHeads * kDim);
      backend->rope_and_store(query, part(k, kKvHeads * kDim), part(v, kKvHeads * kDim), kv, layer);
      const Rows to = device.rows(rows, kHeads * kDim);
      backend->attention(query, kv, layer, to);
      const std::vector<float> values = device.read(to);
      out.insert(out.end(), values.begin(), values.end());
    };
    pass(0, 17);
    for (size_t b = 0; b < 2; ++b) {  // move to other blocks; the old ones are overwritten below
      const BlockIndex other(b == 0 ? 0U : 3U);
      backend->copy_block(kv, blocks[b], other);
      blocks[b] = other;
    }
    pass(17, 18);
    pass(18, kTokens);
    results.push_back(std::move(out));
  }
  BOOST_TEST((results[0] == results[1]));  // cpu: to the bit
  check_close(results[0], results[2], tolerance);
}

BOOST_AUTO_TEST_CASE(attention_reads_what_earlier_batches_stored_and_copied_blocks_serve_as_well) {
  check_attention(KvType::kF16, 2e-3);   // 2^-11 of values up to 1
  check_attention(KvType::kInt8, 1e-2);  // half a step of 1 / 127, and scores' errors
}

}  // namespace
}  // namespace troupe::test
