// How far the fast path's arithmetic is from fp32, over varied text: mean Kullback-Leibler
// divergence of the next-token distribution and perplexity, on every file of tests/golden/eval_text
// in pieces of 512 tokens, and for Gemma of 768, so that its sliding window is left behind; with KV
// in binary16 and in 8 bits.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/unit/engine/model/decoder_fixture.h"

namespace troupe::test {
namespace {

constexpr uint32_t kWindowMax = 768;
constexpr uint32_t kLogitsRows = 64;
constexpr double kDivergenceMax = 0.004;
constexpr double kPerplexityRatioMax = 0.006;

// A model that gives the logits of all positions of a window, some rows at a time.
class Scorer {
 public:
  Scorer(const GgufFile& file, std::unique_ptr<Backend> backend, KvType kv_type)
      : backend_(std::move(backend)),
        description_(must(read_model(file))),
        model_(must(DecoderModel::load(file, description_, *backend_))),
        activations_(must(model_->make_activations(kWindowMax, kLogitsRows))),
        kv_(must(backend_->allocate_kv({.layers = description_.config.layers,
                                        .kv_heads = description_.config.kv_heads,
                                        .head_dim = description_.config.head_size,
                                        .blocks = kWindowMax / kBlockTokens,
                                        .type = kv_type}))),
        host_(must(backend_->allocate(uint64_t{kLogitsRows} * vocab() * sizeof(float),
                                      MemoryKind::kHostPinned))) {
    for (uint32_t b = 0; b < kWindowMax / kBlockTokens; ++b) blocks_.emplace_back(b);
  }

  [[nodiscard]] uint32_t vocab() const { return description_.config.vocab; }
  [[nodiscard]] std::string name() const { return std::string(backend_->description()); }

  void forward(std::span<const TokenId> window) {
    const BatchSlice slice{0, static_cast<uint32_t>(window.size()), 0, blocks_};
    model_->forward({.tokens = window, .slices = {&slice, 1}}, {.all = kv_}, activations_);
  }
  // Of rows [begin, end), at most kLogitsRows; valid until the next call.
  const float* logits(uint32_t begin, uint32_t end) {
    std::vector<uint32_t> rows;
    for (uint32_t r = begin; r < end; ++r) rows.push_back(r);
    model_->logits(rows, activations_);
    backend_->copy(host_, 0, activations_.logits, 0, rows.size() * vocab() * sizeof(float));
    BOOST_REQUIRE(backend_->wait(backend_->record_event(), std::chrono::minutes(1)).ok());
    return reinterpret_cast<const float*>(backend_->host_bytes(host_).data());
  }

 private:
  std::unique_ptr<Backend> backend_;
  ModelDescription description_;
  std::unique_ptr<DecoderModel> model_;
  DecoderActivations activations_;
  KvHandle kv_;
  BufferHandle host_;
  std::vector<BlockIndex> blocks_;
};

struct Sums {
  double divergence = 0.0, fast_loss = 0.0, exact_loss = 0.0;
  uint64_t positions = 0, scored = 0, same_top = 0;
};

double log_sum_exp(std::span<const float> logits, std::vector<float>& weights) {
  const float peak = *std::max_element(logits.begin(), logits.end());
  double sum = 0.0;
  for (size_t i = 0; i < logits.size(); ++i) {
    weights[i] = std::exp(logits[i] - peak);
    sum += weights[i];
  }
  return peak + std::log(sum);
}

// `next`: the token that follows, or -1 at the end of a window.
void add_position(std::span<const float> fast, std::span<const float> exact, TokenId next,
                  Sums& sums) {
  std::vector<float> weights(fast.size());
  const double fast_norm = log_sum_exp(fast, weights);
  const double exact_norm = log_sum_exp(exact, weights);
  double weighted = 0.0, total = 0.0;
  for (size_t i = 0; i < fast.size(); ++i) {
    weighted += double{weights[i]} * (double{exact[i]} - fast[i]);
    total += weights[i];
  }
  sums.divergence += weighted / total - exact_norm + fast_norm;
  ++sums.positions;
  const auto top = [](std::span<const float> x) {
    return std::max_element(x.begin(), x.end()) - x.begin();
  };
  if (top(fast) == top(exact)) ++sums.same_top;
  if (next < 0) return;
  sums.fast_loss += fast_norm - fast[next];
  sums.exact_loss += exact_norm - exact[next];
  ++sums.scored;
}

// A way to compute, and how far it is from fp32.
struct Way {
  Scorer scorer;
  KvType kv_type;
  Sums sums;

  Way(const GgufFile& file, CpuIsa isa, KvType type)
      : scorer(file, cpu_backend(2, isa), type), kv_type(type) {}
};
using Ways = std::vector<std::unique_ptr<Way>>;

void add_rows(Way& way, const float* exact, std::span<const TokenId> window, uint32_t begin,
              uint32_t end, ThreadPool& pool) {
  const float* fast = way.scorer.logits(begin, end);
  std::vector<Sums> rows(end - begin);
  const size_t vocab = way.scorer.vocab();
  pool.each(end - begin, [&](uint32_t r, uint32_t) {
    add_position({fast + r * vocab, vocab}, {exact + r * vocab, vocab},
                 begin + r + 1 < window.size() ? window[begin + r + 1] : -1, rows[r]);
  });
  Sums& sums = way.sums;
  for (const Sums& row : rows) {
    sums.divergence += row.divergence;
    sums.fast_loss += row.fast_loss;
    sums.exact_loss += row.exact_loss;
    sums.positions += row.positions;
    sums.scored += row.scored;
    sums.same_top += row.same_top;
  }
}

// Scores the positions from `first` on.
void add_window(const Ways& ways, Scorer& exact, std::span<const TokenId> window, uint32_t first,
                ThreadPool& pool) {
  for (const auto& way : ways) way->scorer.forward(window);
  exact.forward(window);
  const auto size = static_cast<uint32_t>(window.size());
  for (uint32_t begin = first; begin < size; begin += kLogitsRows) {
    const uint32_t end = std::min(size, begin + kLogitsRows);
    const float* logits = exact.logits(begin, end);
    for (const auto& way : ways) add_rows(*way, logits, window, begin, end, pool);
  }
}

Tokens evaluation_tokens(const GgufFile& file) {
  const auto tokenizer = must(Tokenizer::create(must(tokenizer_spec_of(file))));
  const std::filesystem::path folder = TROUPE_SOURCE_DIR "/tests/golden/eval_text";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Tokens tokens;
  for (const auto& path : paths) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const Tokens more = must(tokenizer->encode(TextPiece{text.str(), false}));
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

void check_way(const Way& way, const std::string& reference) {
  const Sums& sums = way.sums;
  const double divergence = sums.divergence / static_cast<double>(sums.positions);
  const auto perplexity = [&](double loss) {
    return std::exp(loss / static_cast<double>(sums.scored));
  };
  const double ratio = perplexity(sums.fast_loss) / perplexity(sums.exact_loss) - 1.0;
  BOOST_TEST_MESSAGE(way.scorer.name()
                     << ", KV in " << to_string(way.kv_type) << ", against " << reference
                     << " over " << sums.positions << " tokens: mean KL divergence " << divergence
                     << ", perplexity " << perplexity(sums.fast_loss) << " against "
                     << perplexity(sums.exact_loss) << " (" << 100 * ratio << " %), same top token "
                     << 100.0 * sums.same_top / sums.positions << " %");
  BOOST_TEST(divergence >= 0.0);
  BOOST_TEST(divergence <= kDivergenceMax);
  BOOST_TEST(std::abs(ratio) <= kPerplexityRatioMax);
}

// The first `count` tokens of the text in windows of `window`, of each the positions from `first`
// on.
void check_accuracy(const char* model, size_t count, uint32_t window, uint32_t first) {
  const auto file = must(GgufFile::open(model));
  const Tokens tokens = evaluation_tokens(*file);
  BOOST_REQUIRE_MESSAGE(tokens.size() >= count, "tests/golden/eval_text holds "
                                                    << tokens.size() << " tokens, " << count
                                                    << " are needed");
  const CpuIsa isa = detect_best_cpu_isa();
  Ways ways;
  for (const KvType type : {KvType::kF16, KvType::kInt8})
    ways.push_back(std::make_unique<Way>(*file, isa, type));
  Scorer exact(*file, std::make_unique<ReferenceBackend>(2, isa), KvType::kF32);
  ThreadPool pool(2);
  for (size_t begin = 0; begin < count; begin += window)
    add_window(ways, exact,
               std::span(tokens).subspan(begin, std::min<size_t>(window, tokens.size() - begin)),
               first, pool);
  for (const auto& way : ways) check_way(*way, exact.name());
}

BOOST_AUTO_TEST_CASE(the_fast_path_predicts_what_fp32_predicts) {
  check_accuracy(kSmolLm2, 6000, 512, 0);
}

BOOST_AUTO_TEST_CASE(the_fast_path_predicts_what_fp32_predicts_with_the_traits_of_gemma) {
  check_accuracy(kGemma3, 3072, 768, 640);  // a large vocabulary: some beyond the window
}

}  // namespace
}  // namespace troupe::test
