// A small random model of each family against an implementation that is not ours
// (tests/golden/decoder, made by tools/make_decoder_goldens.py in float64).

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/support/tiny_families.h"
#include "tests/unit/engine/model/decoder_fixture.h"

namespace troupe::test {
namespace {

constexpr ExecutorLimits kLimits{.step_tokens_max = 128, .kv_blocks = 8, .logits_rows_max = 32};

nlohmann::json read_goldens(const std::string& family) {
  const std::string path = TROUPE_SOURCE_DIR "/tests/golden/decoder/" + family + ".json";
  std::ifstream in(path);
  BOOST_REQUIRE_MESSAGE(in.good(), path << " is missing");
  return nlohmann::json::parse(in);
}

// The largest difference of a log-probability, the tokens fed in chunks of `chunk`.
double largest_difference(Executor& executor, const nlohmann::json& goldens, uint32_t chunk) {
  const Tokens tokens = goldens.at("tokens").get<Tokens>();
  const nlohmann::json& positions = goldens.at("positions");
  const Generated scored = generate(
      executor, {tokens},
      {.output_tokens = 1, .chunk = chunk, .score_prompt = true, .prompt_alternatives = 40});
  BOOST_REQUIRE_EQUAL(positions.size() + 1, tokens.size());
  BOOST_REQUIRE_GT(scored[0].size(), positions.size());
  double largest = 0.0;
  for (size_t p = 0; p < positions.size(); ++p) {
    const SampledToken& score = scored[0][p];
    BOOST_REQUIRE_EQUAL(score.token, positions[p][0][0].get<TokenId>());
    largest = std::max(largest, std::abs(double{score.logprob} - positions[p][0][1].get<double>()));
    for (size_t i = 1; i < positions[p].size(); ++i) {
      const auto id = positions[p][i][0].get<TokenId>();
      const auto found = std::find_if(score.top.begin(), score.top.end(),
                                      [&](const TokenLogprob& t) { return t.token == id; });
      BOOST_REQUIRE_MESSAGE(found != score.top.end(), "token " << id << " is far down");
      largest =
          std::max(largest, std::abs(double{found->logprob} - positions[p][i][1].get<double>()));
    }
  }
  return largest;
}

// Rounding of fp32 alone: some hundred operations of 2^-24 each, on logits of magnitude 10.
constexpr double kReferenceMax = 1e-4;

// As in decoder_model_test: activations are rounded to steps of peak / 2047, errors of 4 L + 1
// layers add up in quadrature, logits here spread by about 3, six deviations for the worst.
double fast_max(uint32_t layers) {
  return 6.0 * std::sqrt(4.0 * layers + 1.0) * 4.0 / (2047.0 * std::sqrt(12.0)) * 3.0;
}

BOOST_AUTO_TEST_CASE(every_family_computes_what_an_independent_implementation_computes) {
  const CpuIsa isa = detect_best_cpu_isa();
  for (const TinyFamily& family : tiny_families()) {
    const std::string bytes = make_tiny_model(family.options);
    const auto file = must(GgufFile::from_bytes(std::as_bytes(std::span(bytes)), family.name));
    const nlohmann::json goldens = read_goldens(family.name);
    LoadedModel exact(*file, std::make_unique<ReferenceBackend>(2, isa), kLimits);
    LoadedModel fast(*file, cpu_backend(2, isa), kLimits);
    for (uint32_t chunk : {128U, 37U, 16U}) {
      const double reference = largest_difference(*exact.executor, goldens, chunk);
      const double cpu = largest_difference(*fast.executor, goldens, chunk);
      BOOST_TEST_MESSAGE(family.name << " in chunks of " << chunk << ": largest difference "
                                     << reference << " (reference), " << cpu << " (cpu)");
      BOOST_TEST(reference < kReferenceMax, family.name);
      BOOST_TEST(cpu < fast_max(family.options.layers), family.name);
    }
  }
}

}  // namespace
}  // namespace troupe::test
