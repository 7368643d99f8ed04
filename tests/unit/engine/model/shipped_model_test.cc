// The models that ./test fetches: the same tokens however they are computed, and the
// log-probabilities of an implementation that is not ours (tests/golden/logprobs, made by
// tools/make_logprob_goldens.py).

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/tokenizer/gguf_tokenizer.h"
#include "engine/tokenizer/tokenizer.h"
#include "tests/unit/engine/model/decoder_fixture.h"

namespace troupe::test {
namespace {

constexpr ExecutorLimits kLimits{.step_tokens_max = 512, .kv_blocks = 256};
// A golden case is one step.
constexpr ExecutorLimits kGoldenLimits{.step_tokens_max = 1024, .kv_blocks = 64};

const char* const kPrompts[] = {
    "The capital of France is",
    "Once upon a time, in a small village by the sea, there lived",
    "def fibonacci(n):\n    ",
    "1, 2, 3, 4,",
    "Es war einmal",
    "The three laws of thermodynamics are as follows. The first law says that energy is neither "
    "created nor destroyed; it only changes its form. The second law says that",
    "I",
};

std::vector<Tokens> encoded_prompts(const GgufFile& file) {
  const auto tokenizer = must(Tokenizer::create(must(tokenizer_spec_of(file))));
  std::vector<Tokens> prompts;
  std::string all;
  for (const char* text : kPrompts) {
    prompts.push_back(must(tokenizer->encode(TextPiece{text, false})));
    all += text;
  }
  all = all + all + all + all;  // more than one segment of attention
  prompts.push_back(must(tokenizer->encode(TextPiece{all, false})));
  BOOST_REQUIRE_GT(prompts.back().size(), kSegmentTokens);
  return prompts;
}

BOOST_AUTO_TEST_CASE(eight_prompts_give_the_same_tokens_however_they_are_computed) {
  const auto file = must(GgufFile::open(kSmolLm2));
  const std::vector<Tokens> prompts = encoded_prompts(*file);
  const GenerateOptions alone{.output_tokens = 6, .together = 1, .blocks_each = 24};
  const CpuIsa best = detect_best_cpu_isa();
  LoadedModel model(*file, cpu_backend(2, best), kLimits);
  const Generated expected = generate(*model.executor, prompts, alone);

  GenerateOptions together = alone;
  together.together = 8;
  check_same(generate(*model.executor, prompts, together), expected, "together");
  for (uint32_t chunk : {2U, 5U, 16U, 31U, 64U, 100U, 256U}) {
    together.chunk = chunk;
    check_same(generate(*model.executor, prompts, together), expected,
               "in chunks of " + std::to_string(chunk));
  }
  together.chunk = 48;
  for (uint32_t threads : {1U, 3U}) {
    LoadedModel other(*file, cpu_backend(threads, best), kLimits);
    check_same(generate(*other.executor, prompts, together), expected,
               std::to_string(threads) + " threads");
  }
  for (CpuIsa isa : kCpuIsas) {
    if (!supports(isa) || isa == best) continue;
    LoadedModel other(*file, cpu_backend(2, isa), kLimits);
    if (isa != CpuIsa::kScalar) {
      check_same(generate(*other.executor, prompts, together), expected,
                 std::string(to_string(isa)));
      continue;
    }
    // Slow: two short prompts.
    GenerateOptions few = together;
    const std::vector<Tokens> some = {prompts[0], prompts[3]};
    check_same(generate(*other.executor, some, few), {expected[0], expected[3]}, "scalar");
  }
}

struct Difference {
  double largest = 0.0;
  double squares = 0.0;
  uint64_t count = 0;
};

// Scores prompt and answer of each case, and compares all stored alternatives at each position.
Difference compare_with_goldens(Executor& executor, const nlohmann::json& goldens) {
  Difference difference;
  for (const nlohmann::json& golden : goldens.at("cases")) {
    Tokens tokens = golden.at("prompt_ids").get<Tokens>();
    const size_t prompt = tokens.size();
    for (const nlohmann::json& id : golden.at("ids")) tokens.push_back(id.get<TokenId>());
    StepPlan plan;
    StepSlice slice;
    slice.tokens = tokens;
    for (uint32_t b = 0; b <= tokens.size() / kBlockTokens; ++b) slice.blocks.emplace_back(b);
    slice.score_prompt = true;
    auto params = std::make_shared<SamplingParams>();
    params->prompt_logprobs = 100;
    slice.params = params;
    plan.slices.push_back(std::move(slice));
    const StepResult result = must(executor.execute(plan));
    const nlohmann::json& tops = golden.at("top");
    for (size_t p = 0; p < tops.size(); ++p) {
      const SampledToken& score = result.slices[0].prompt_scores.at(prompt - 1 + p);
      BOOST_REQUIRE_EQUAL(score.token, tokens[prompt + p]);
      for (const nlohmann::json& alternative : tops[p]) {
        const auto id = alternative.at(0).get<TokenId>();
        const auto found = std::find_if(score.top.begin(), score.top.end(),
                                        [&](const TokenLogprob& t) { return t.token == id; });
        BOOST_REQUIRE_MESSAGE(found != score.top.end(), "token " << id << " is far down");
        const double d = std::abs(double{found->logprob} - alternative.at(1).get<double>());
        difference.largest = std::max(difference.largest, d);
        difference.squares += d * d;
        ++difference.count;
      }
    }
  }
  return difference;
}

nlohmann::json read_goldens(const std::string& name) {
  const std::string path = TROUPE_SOURCE_DIR "/tests/golden/logprobs/" + name;
  std::ifstream in(path);
  BOOST_REQUIRE_MESSAGE(in.good(), path << " is missing");
  return nlohmann::json::parse(in);
}

// The derivation stands in docs/adr/0003: each linear layer rounds its input with a relative error
// of (peak / rms) / (2047 sqrt(12)), where peak / rms is 12.3 over this model's layers (root mean
// square); the errors of 4 * 30 + 1 layers add up in quadrature; logits have a deviation of 3.54
// over the vocabulary. Rows whose peak is twice the usual one are off by twice as much, and the
// worst of 15,360 values by four deviations of that.
constexpr double kExpectedDeviation = 11.0 * 12.3 / (2047.0 * 3.4641) * 3.54;

// Of Gemma there are 18 layers, and peaks are taken to be as high.
constexpr double kExpectedOfGemma = 8.54 * 12.3 / (2047.0 * 3.4641) * 5.0;

struct Shipped {
  const char* model;
  const char* goldens;
  double expected_deviation;
};
constexpr Shipped kShipped[] = {{kSmolLm2, "fp32.json", kExpectedDeviation},
                                {kGemma3, "gemma3_fp32.json", kExpectedOfGemma}};

BOOST_AUTO_TEST_CASE(the_fp32_reference_agrees_with_other_implementations_within_0_002) {
  for (const Shipped& shipped : kShipped) {
    const auto file = must(GgufFile::open(shipped.model));
    LoadedModel model(*file, std::make_unique<ReferenceBackend>(2, detect_best_cpu_isa()),
                      kGoldenLimits);
    const Difference difference =
        compare_with_goldens(*model.executor, read_goldens(shipped.goldens));
    BOOST_TEST_MESSAGE(shipped.model << ": largest difference of " << difference.count
                                     << " log-probabilities: " << difference.largest);
    BOOST_TEST(difference.count > 0U);
    BOOST_TEST(difference.largest < 2e-3);
  }
}

BOOST_AUTO_TEST_CASE(the_fast_path_stays_within_its_derived_bound_of_fp32) {
  for (const Shipped& shipped : kShipped) {
    const auto file = must(GgufFile::open(shipped.model));
    LoadedModel model(*file, cpu_backend(2, detect_best_cpu_isa()), kGoldenLimits);
    const Difference difference =
        compare_with_goldens(*model.executor, read_goldens(shipped.goldens));
    const double deviation = std::sqrt(difference.squares / static_cast<double>(difference.count));
    BOOST_TEST_MESSAGE(shipped.model << ": largest difference of " << difference.count
                                     << " log-probabilities: " << difference.largest
                                     << ", root mean square " << deviation);
    BOOST_TEST(deviation < shipped.expected_deviation);
    BOOST_TEST(difference.largest < 2.0 * 4.0 * shipped.expected_deviation);
  }
}

}  // namespace
}  // namespace troupe::test
