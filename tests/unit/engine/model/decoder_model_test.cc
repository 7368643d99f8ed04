// "Same request, same tokens" on tiny random models: every instruction set, thread count, batch and
// chunking gives the same token ids and the same bits of every log-probability.

#include "engine/model/decoder_model.h"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <random>

#include "tests/support/gguf_writer.h"
#include "tests/support/tiny_families.h"
#include "tests/unit/engine/model/decoder_fixture.h"

namespace troupe::test {
namespace {

std::unique_ptr<GgufFile> parse(const std::string& bytes) {
  return must(GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "tiny.gguf"));
}

std::vector<Tokens> random_prompts(uint32_t count, uint32_t longest, uint32_t vocab) {
  std::mt19937 engine(7);
  std::vector<Tokens> prompts(count);
  for (uint32_t i = 0; i < count; ++i) {
    prompts[i].resize(1 + (i * 13 + 5) % longest);
    for (TokenId& token : prompts[i]) token = static_cast<TokenId>(engine() % vocab);
  }
  return prompts;
}

std::vector<TinyModelOptions> model_table() {
  std::vector<TinyModelOptions> table;
  table.push_back({});  // heads of 8: padded in the cache
  table.push_back({.heads = 2,
                   .kv_heads = 1,
                   .head_size = 32,
                   .width = 64,
                   .ffn_width = 96,
                   .weights = WeightType::kQ4_1,
                   .embeddings = WeightType::kQ8_0});
  table.push_back({.heads = 8,
                   .kv_heads = 1,
                   .head_size = 48,
                   .width = 96,
                   .ffn_width = 64,
                   .weights = WeightType::kQ4_0,
                   .embeddings = WeightType::kF16,
                   .tied = false});
  table.push_back({.layers = 1,
                   .heads = 3,
                   .kv_heads = 3,
                   .head_size = 64,
                   .width = 192,
                   .ffn_width = 224,
                   .weights = WeightType::kBF16,
                   .rope_factors = std::vector<float>(32, 4.0F)});
  for (const TinyFamily& family : tiny_families()) table.push_back(family.options);
  // Types of a real file; heads of 256, as many for keys and values as for queries.
  table.push_back({.architecture = "gemma3",
                   .layers = 2,
                   .heads = 2,
                   .kv_heads = 2,
                   .head_size = 256,
                   .width = 256,
                   .ffn_width = 256,
                   .weights = WeightType::kQ6_K,
                   .embeddings = WeightType::kQ8_0,
                   .window = 33,
                   .global_every = 2});
  table.push_back({.architecture = "qwen3",
                   .layers = 1,
                   .heads = 2,
                   .kv_heads = 1,
                   .head_size = 128,
                   .width = 256,
                   .ffn_width = 256,
                   .weights = WeightType::kQ4_K,
                   .embeddings = WeightType::kQ5_0});
  return table;
}

constexpr KvType kTypes[] = {KvType::kF16, KvType::kInt8};

ExecutorLimits limits_with(KvType type) {
  return {.step_tokens_max = 64, .kv_blocks = 128, .kv_type = type, .logits_rows_max = 3};
}

void check_tokens(const TinyModelOptions& options, KvType type) {
  const std::string bytes = make_tiny_model(options);
  const auto file = parse(bytes);
  LoadedModel scalar(*file, cpu_backend(1, CpuIsa::kScalar), limits_with(type));
  const std::vector<Tokens> prompts = random_prompts(6, 60, scalar.description.config.vocab);
  const GenerateOptions alone{
      .output_tokens = 10, .together = 1, .temperature = 0.8F, .score_prompt = true};
  const Generated expected = generate(*scalar.executor, prompts, alone);
  const auto compare = [&](LoadedModel& model, GenerateOptions how, const std::string& what) {
    how.output_tokens = alone.output_tokens;
    how.temperature = alone.temperature;
    how.score_prompt = true;
    check_same(generate(*model.executor, prompts, how), expected, what);
  };
  for (CpuIsa isa : kCpuIsas) {
    if (!supports(isa)) continue;
    for (uint32_t threads : {1U, 3U}) {
      if (type != KvType::kF16 && threads == 1) continue;  // for the sake of time
      LoadedModel model(*file, cpu_backend(threads, isa), limits_with(type));
      const std::string name =
          std::string(model.backend->description()) + ", " + std::string(to_string(type));
      compare(model, {.together = 1}, name + " alone");
      compare(model, {}, name + " together");
      for (uint32_t chunk : {7U, 1U, 33U}) {
        compare(model, {.chunk = chunk, .together = 4}, name + " in chunks");
        if (type != KvType::kF16) break;
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(tokens_and_log_probabilities_do_not_depend_on_how_they_are_computed) {
  for (const KvType type : kTypes)
    for (const TinyModelOptions& options : model_table()) check_tokens(options, type);
}

void check_long_sequences(TinyModelOptions tiny, KvType type) {
  tiny.context_length = 1024;
  const std::string bytes = make_tiny_model(tiny);
  const auto file = parse(bytes);
  const ExecutorLimits limits{.step_tokens_max = 600, .kv_blocks = 128, .kv_type = type};
  std::vector<Tokens> prompts = random_prompts(2, 60, 256);
  prompts[0].resize(530, 9);
  LoadedModel scalar(*file, cpu_backend(1, CpuIsa::kScalar), limits);
  const GenerateOptions options{.output_tokens = 6, .together = 1, .blocks_each = 40};
  const Generated expected = generate(*scalar.executor, prompts, options);
  for (CpuIsa isa : kCpuIsas) {
    if (!supports(isa)) continue;
    LoadedModel model(*file, cpu_backend(3, isa), limits);  // few sequences: segments are split
    for (uint32_t chunk : {600U, 255U, 100U, 17U})
      check_same(generate(*model.executor, prompts,
                          {.output_tokens = 6, .chunk = chunk, .together = 2, .blocks_each = 40}),
                 expected, std::string(to_string(isa)));
  }
  if (tiny.window == 0) return;
  // As many windowed blocks as a chunk's rows see together, for each of the two.
  for (uint32_t chunk : {100U, 17U}) {
    ExecutorLimits recycling = limits;
    recycling.kv_window_blocks = 2 * ((tiny.window + chunk) / kBlockTokens + 2);
    LoadedModel model(*file, cpu_backend(3, detect_best_cpu_isa()), recycling);
    check_same(generate(*model.executor, prompts,
                        {.output_tokens = 6, .chunk = chunk, .together = 2, .blocks_each = 40}),
               expected, "windowed blocks serve again");
  }
}

BOOST_AUTO_TEST_CASE(long_sequences_cross_segments_with_the_same_bits) {
  for (const KvType type : kTypes) check_long_sequences({}, type);
}

BOOST_AUTO_TEST_CASE(long_sequences_leave_windows_behind_with_the_same_bits) {
  for (const KvType type : kTypes)
    for (uint32_t window : {15U, 100U, 300U})
      check_long_sequences(
          {.architecture = "gemma3", .layers = 3, .window = window, .global_every = 3}, type);
}

// What rounding may do. Activations are rounded to steps of peak / 2047 per row: an error of
// (peak / rms) / (2047 sqrt(12)) = 5.6e-4 relative to the row, for a peak of 4 rms; weights (15
// bit) and KV (binary16) add less. A layer has four linear layers in two branches, so the errors of
// L layers and the output add up to sqrt(4 L + 1) times that, in quadrature as their signs are
// random. Times the spread of the logits, and six deviations for the worst of some hundred.
double rounding_bound(uint32_t layers, double spread) {
  return 6.0 * std::sqrt(4.0 * layers + 1.0) * 4.0 / (2047.0 * std::sqrt(12.0)) * spread;
}

BOOST_AUTO_TEST_CASE(log_probabilities_stay_close_to_the_fp32_reference) {
  for (const TinyModelOptions& options : model_table()) {
    const std::string bytes = make_tiny_model(options);
    const auto file = parse(bytes);
    const ExecutorLimits limits = limits_with(KvType::kF16);
    LoadedModel fast(*file, cpu_backend(2, detect_best_cpu_isa()), limits);
    LoadedModel reference(*file, std::make_unique<ReferenceBackend>(2, detect_best_cpu_isa()),
                          limits);
    const std::vector<Tokens> prompts = random_prompts(4, 60, fast.description.config.vocab);
    const GenerateOptions score{.output_tokens = 1, .score_prompt = true};
    const Generated a = generate(*fast.executor, prompts, score);
    const Generated b = generate(*reference.executor, prompts, score);
    double worst = 0.0, sum = 0.0, squares = 0.0, count = 0.0;
    for (size_t i = 0; i < a.size(); ++i)
      for (size_t t = 0; t + 1 < a[i].size(); ++t) {  // the last one is sampled
        BOOST_REQUIRE_EQUAL(a[i][t].token, b[i][t].token);
        worst = std::max(worst, std::abs(double{a[i][t].logprob} - b[i][t].logprob));
        sum += b[i][t].logprob;
        squares += double{b[i][t].logprob} * b[i][t].logprob;
        count += 1.0;
      }
    const double spread = std::sqrt(squares / count - sum / count * sum / count);
    const double bound = rounding_bound(options.layers, spread);
    BOOST_TEST_MESSAGE("largest difference of a log-probability: " << worst << " of at most "
                                                                   << bound);
    BOOST_TEST(worst < bound);
  }
}

BOOST_AUTO_TEST_CASE(loading_reports_all_bytes_and_keeps_no_second_copy_of_a_tied_output) {
  const TinyModelOptions tied{.weights = WeightType::kQ8_0, .embeddings = WeightType::kQ8_0};
  TinyModelOptions untied = tied;
  untied.tied = false;
  uint64_t weights[2] = {};
  for (int i = 0; i < 2; ++i) {
    const std::string bytes = make_tiny_model(i == 0 ? tied : untied);
    const auto file = parse(bytes);
    const ModelDescription description = must(read_model(*file));
    CpuBackend backend({.threads = 1, .isa = CpuIsa::kScalar});
    uint64_t last = 0, total = 0;
    const auto model = must(DecoderModel::load(*file, description, backend,
                                               [&](uint64_t done_bytes, uint64_t total_bytes) {
                                                 BOOST_TEST(done_bytes > last);
                                                 last = done_bytes;
                                                 total = total_bytes;
                                               }));
    BOOST_TEST(last == total);
    weights[i] = backend.weight_bytes();
  }
  BOOST_TEST(weights[0] == weights[1]);
}

}  // namespace
}  // namespace troupe::test
