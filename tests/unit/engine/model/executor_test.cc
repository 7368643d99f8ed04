#include "engine/model/executor.h"

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <limits>

#include "tests/support/gguf_writer.h"
#include "tests/unit/engine/model/decoder_fixture.h"

namespace troupe::test {
namespace {

constexpr ExecutorLimits kLimits{.step_tokens_max = 40, .kv_blocks = 32, .logits_rows_max = 4};

struct TinyModel {
  explicit TinyModel(std::string bytes_in = make_tiny_model({}), uint32_t threads = 2)
      : bytes(std::move(bytes_in)),
        file(must(GgufFile::from_bytes(std::as_bytes(std::span(bytes)), "tiny.gguf"))),
        loaded(*file, cpu_backend(threads, detect_best_cpu_isa()), kLimits) {}

  const std::string bytes;
  const std::unique_ptr<GgufFile> file;
  LoadedModel loaded;
};

StepSlice slice(uint64_t sequence, Tokens tokens, uint32_t position,
                std::vector<BlockIndex> blocks) {
  StepSlice made;
  made.sequence = SequenceId(sequence);
  made.tokens = std::move(tokens);
  made.position = position;
  made.blocks = std::move(blocks);
  made.sample = true;
  auto params = std::make_shared<SamplingParams>();
  params->temperature = 0.0F;
  params->logprobs = 2;
  made.params = std::move(params);
  return made;
}

BOOST_AUTO_TEST_CASE(results_come_in_the_plans_order_with_its_number_and_the_clocks_time) {
  TinyModel tiny;
  tiny.loaded.clock.advance(std::chrono::seconds(5));
  StepPlan plan;
  plan.number = 42;
  plan.slices.push_back(slice(7, {1, 2, 3}, 0, {BlockIndex(0)}));
  plan.slices.push_back(slice(3, {4, 5}, 0, {BlockIndex(1)}));
  plan.slices[1].sample = false;
  const StepResult result = must(tiny.loaded.executor->execute(plan));
  BOOST_TEST(result.number == 42U);
  BOOST_TEST((result.started == tiny.loaded.clock.now()));
  BOOST_TEST((result.finished == tiny.loaded.clock.now()));
  BOOST_REQUIRE_EQUAL(result.slices.size(), 2U);
  BOOST_TEST(result.slices[0].sequence == SequenceId(7));
  BOOST_TEST_REQUIRE(result.slices[0].sampled.size() == 1U);
  BOOST_TEST(result.slices[0].sampled[0].top.size() == 2U);
  BOOST_TEST(result.slices[1].sequence == SequenceId(3));
  BOOST_TEST(result.slices[1].sampled.empty());
}

BOOST_AUTO_TEST_CASE(guesses_are_followed_as_far_as_they_are_right) {
  TinyModel tiny;
  // What the model says by itself, one token a step, with a penalty that depends on all of them.
  const auto next = [&](const Tokens& known, Tokens guesses) {
    StepPlan plan;
    plan.number = 1;
    Tokens tokens = known;
    tokens.insert(tokens.end(), guesses.begin(), guesses.end());
    plan.slices.push_back(slice(1, tokens, 0, {BlockIndex(0)}));
    plan.slices[0].guesses = static_cast<uint32_t>(guesses.size());
    plan.slices[0].history = known;
    plan.slices[0].prompt_tokens = 3;
    plan.slices[0].output_tokens = static_cast<uint32_t>(known.size()) - 3;
    SamplingParams params = *plan.slices[0].params;
    params.temperature = 1.0F;
    params.seed = 9;
    params.repetition_penalty = 1.3F;
    plan.slices[0].params = std::make_shared<const SamplingParams>(params);
    return must(tiny.loaded.executor->execute(plan)).slices.at(0).sampled;
  };
  Tokens known = {1, 2, 3};
  std::vector<SampledToken> alone;
  for (int i = 0; i < 4; ++i) {
    const auto sampled = next(known, {});
    BOOST_TEST_REQUIRE(sampled.size() == 1U);
    alone.push_back(sampled[0]);
    known.push_back(sampled[0].token);
  }
  const Tokens said(known.begin() + 3, known.end());
  const Tokens right(said.begin(), said.begin() + 3);
  BOOST_TEST((next({1, 2, 3}, right) == alone));
  Tokens half = right;
  half[1] = half[1] == 5 ? 6 : 5;
  BOOST_TEST((next({1, 2, 3}, half) == std::vector<SampledToken>{alone[0], alone[1]}));
  Tokens wrong = right;
  wrong[0] = wrong[0] == 5 ? 6 : 5;
  BOOST_TEST((next({1, 2, 3}, wrong) == std::vector<SampledToken>{alone[0]}));
}

// Which thread samples which sequence is a race, and each has a sampler of its own.
BOOST_AUTO_TEST_CASE(sequences_that_are_sampled_together_get_what_they_get_alone) {
  TinyModel alone(make_tiny_model({}), 1);
  TinyModel together(make_tiny_model({}), 3);
  StepPlan plan;
  for (uint32_t s = 0; s < 13; ++s) {
    StepSlice made = slice(s, {TokenId(s + 1), TokenId(s + 2), 3}, 0, {BlockIndex(s)});
    auto params = std::make_shared<SamplingParams>(*made.params);
    params->temperature = 1.5F;
    params->seed = s;
    params->top_p = 0.95F;
    params->prompt_logprobs = s % 3 == 0 ? 1 : -1;
    made.score_prompt = s % 3 == 0;
    params->presence_penalty = s % 2 == 0 ? 0.7F : 0.0F;
    made.history = made.tokens;
    made.prompt_tokens = 3;
    made.params = std::move(params);
    plan.slices.push_back(std::move(made));
  }
  const StepResult all = must(together.loaded.executor->execute(plan));
  for (size_t s = 0; s < plan.slices.size(); ++s) {
    StepPlan one;
    one.slices.push_back(plan.slices[s]);
    const StepResult result = must(alone.loaded.executor->execute(one));
    BOOST_TEST((all.slices[s].sampled == result.slices[0].sampled), "sequence " << s);
    BOOST_TEST((all.slices[s].prompt_scores == result.slices[0].prompt_scores), "sequence " << s);
  }
}

BOOST_AUTO_TEST_CASE(an_empty_plan_and_one_of_copies_only_are_executed) {
  TinyModel tiny;
  StepPlan plan;
  BOOST_TEST(must(tiny.loaded.executor->execute(plan)).slices.empty());
  plan.copies.push_back({BlockIndex(1), BlockIndex(2)});
  BOOST_TEST(must(tiny.loaded.executor->execute(plan)).slices.empty());
}

BOOST_AUTO_TEST_CASE(a_plan_over_the_token_limit_is_refused_and_nothing_is_executed) {
  TinyModel tiny;
  StepPlan plan;
  plan.slices.push_back(slice(1, Tokens(41, 5), 0, {BlockIndex(0), BlockIndex(1), BlockIndex(2)}));
  const auto result = tiny.loaded.executor->execute(plan);
  BOOST_REQUIRE(!result.ok());
  BOOST_TEST((result.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(result.status().message().find("41") != std::string::npos);
  BOOST_TEST(result.status().message().find("40") != std::string::npos);
  plan.slices[0].tokens.pop_back();
  BOOST_TEST(tiny.loaded.executor->execute(plan).ok());
}

BOOST_AUTO_TEST_CASE(scores_of_a_prompt_are_the_log_probabilities_that_sampling_sees) {
  TinyModel tiny;
  // Greedy output, then the same tokens scored as a prompt in one go and over two chunks.
  const Tokens prompt = {10, 20, 30, 40, 50};
  const Generated output = generate(*tiny.loaded.executor, {prompt}, {.output_tokens = 6});
  Tokens all = prompt;
  for (const SampledToken& token : output[0]) all.push_back(token.token);

  StepPlan plan;
  plan.slices.push_back(slice(1, all, 0, {BlockIndex(0)}));
  plan.slices[0].sample = false;
  plan.slices[0].score_prompt = true;
  const StepResult whole = must(tiny.loaded.executor->execute(plan));
  BOOST_REQUIRE_EQUAL(whole.slices[0].prompt_scores.size(), all.size() - 1);
  for (size_t i = 0; i < output[0].size(); ++i) {
    const SampledToken& score = whole.slices[0].prompt_scores[prompt.size() - 1 + i];
    BOOST_TEST(score.token == output[0][i].token);
    BOOST_TEST(score.logprob == output[0][i].logprob);
  }

  std::vector<SampledToken> chunked;
  for (uint32_t begin : {0U, 7U}) {
    const uint32_t end = begin == 0 ? 7 : static_cast<uint32_t>(all.size());
    StepPlan part;
    part.slices.push_back(
        slice(1, {all.begin() + begin, all.begin() + end}, begin, {BlockIndex(3)}));
    part.slices[0].sample = false;
    part.slices[0].score_prompt = true;
    part.slices[0].next_token = end < all.size() ? all[end] : -1;
    const StepResult result = must(tiny.loaded.executor->execute(part));
    for (const SampledToken& score : result.slices[0].prompt_scores) chunked.push_back(score);
  }
  BOOST_TEST((chunked == whole.slices[0].prompt_scores));
}

// The vector of one prompt, its rows added up over chunks of the given sizes, beside another
// sequence in each step.
std::vector<double> pooled_in_chunks(Executor& executor, const Tokens& prompt,
                                     const std::vector<uint32_t>& chunks, bool beside) {
  std::vector<double> sums;
  uint32_t position = 0;
  for (const uint32_t chunk : chunks) {
    StepPlan plan;
    if (beside) plan.slices.push_back(slice(9, {5, 4, 3}, 0, {BlockIndex(9)}));
    plan.slices.push_back(slice(1, {prompt.begin() + position, prompt.begin() + position + chunk},
                                position, {BlockIndex(3), BlockIndex(5)}));
    plan.slices.back().sample = false;
    plan.slices.back().pooling = SlicePooling{.first = 0, .sums = sums};
    const StepResult result = must(executor.execute(plan));
    BOOST_TEST_REQUIRE(result.slices.back().status.ok());
    sums = result.slices.back().pooled;
    position += chunk;
  }
  return sums;
}

BOOST_AUTO_TEST_CASE(pooled_rows_add_up_to_the_same_bits_in_any_chunks_and_company) {
  TinyModel tiny;
  Executor& executor = *tiny.loaded.executor;
  Tokens prompt;
  for (TokenId token = 3; token < 23; ++token) prompt.push_back(token * 7 % 50);
  const std::vector<double> whole = pooled_in_chunks(executor, prompt, {20}, false);
  BOOST_TEST(whole.size() == tiny.loaded.description.config.width);
  BOOST_TEST((pooled_in_chunks(executor, prompt, {20}, true) == whole));
  BOOST_TEST((pooled_in_chunks(executor, prompt, {1, 6, 5, 8}, true) == whole));
  BOOST_TEST((pooled_in_chunks(executor, prompt, {15, 5}, false) == whole));
  // Another prompt with the same last token has another vector.
  Tokens other = prompt;
  other[0] = 2;
  BOOST_TEST((pooled_in_chunks(executor, other, {20}, false) != whole));
}

BOOST_AUTO_TEST_CASE(pooling_from_the_last_token_on_gives_its_row_alone) {
  TinyModel tiny;
  StepPlan plan;
  plan.slices.push_back(slice(1, {6, 7, 8}, 0, {BlockIndex(0)}));
  plan.slices[0].pooling = SlicePooling{.first = 2, .sums = {}};
  const std::vector<double> last = must(tiny.loaded.executor->execute(plan)).slices[0].pooled;
  plan.slices[0].pooling = SlicePooling{.first = 0, .sums = {}};
  const std::vector<double> all = must(tiny.loaded.executor->execute(plan)).slices[0].pooled;
  plan.slices[0].tokens = {6, 7};
  plan.slices[0].pooling = SlicePooling{.first = 0, .sums = {}};
  const std::vector<double> before = must(tiny.loaded.executor->execute(plan)).slices[0].pooled;
  BOOST_TEST_REQUIRE(last.size() == all.size());
  for (size_t i = 0; i < all.size(); ++i) BOOST_TEST(before[i] + last[i] == all[i]);
}

BOOST_AUTO_TEST_CASE(a_copied_partial_block_continues_like_the_original) {
  TinyModel tiny;
  StepPlan first;
  first.slices.push_back(slice(1, Tokens(21, 6), 0, {BlockIndex(4), BlockIndex(9)}));
  first.slices[0].sample = false;
  static_cast<void>(must(tiny.loaded.executor->execute(first)));
  StepPlan fork;
  fork.copies.push_back({BlockIndex(9), BlockIndex(12)});
  fork.slices.push_back(slice(1, {8}, 21, {BlockIndex(4), BlockIndex(9)}));
  fork.slices.push_back(slice(2, {8}, 21, {BlockIndex(4), BlockIndex(12)}));
  const StepResult result = must(tiny.loaded.executor->execute(fork));
  BOOST_TEST((result.slices[0].sampled == result.slices[1].sampled));
}

BOOST_AUTO_TEST_CASE(logits_that_are_no_numbers_fail_their_own_sequence_alone) {
  GgufWriter writer = tiny_model_writer({.tied = false});
  const TinyModelOptions options;
  const auto vocab = static_cast<uint32_t>(tiny_vocabulary().size());
  std::string table = random_weights(WeightType::kF32, uint64_t{vocab} * options.width, 0.5F, 3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::memcpy(table.data() + size_t{5} * options.width * sizeof(float), &nan, sizeof nan);
  writer.remove_tensor("token_embd.weight");
  writer.add_tensor("token_embd.weight", static_cast<uint32_t>(WeightType::kF32),
                    {options.width, vocab}, table);
  TinyModel tiny(writer.finish());

  StepPlan sound, mixed;
  sound.slices.push_back(slice(1, {6, 7, 8}, 0, {BlockIndex(0)}));
  const StepResult alone = must(tiny.loaded.executor->execute(sound));
  mixed.slices.push_back(slice(2, {6, 5, 8}, 0, {BlockIndex(1)}));
  mixed.slices.push_back(slice(1, {6, 7, 8}, 0, {BlockIndex(0)}));
  const StepResult result = must(tiny.loaded.executor->execute(mixed));
  BOOST_TEST((result.slices[0].status.code() == StatusCode::kInternal));
  BOOST_TEST(result.slices[0].sampled.empty());
  BOOST_TEST(result.slices[1].status.ok());
  BOOST_TEST((result.slices[1].sampled == alone.slices[0].sampled));
}

BOOST_AUTO_TEST_CASE(too_large_a_pool_is_an_error_and_leaves_the_model_usable) {
  TinyModel tiny;
  ExecutorLimits limits = kLimits;
  limits.kv_blocks = std::numeric_limits<uint32_t>::max();
  limits.logits_rows_max = uint32_t{1} << 30;
  const auto result =
      Executor::make(*tiny.loaded.backend, *tiny.loaded.model, {}, tiny.loaded.clock, limits);
  if (!result.ok()) BOOST_TEST((result.status().code() == StatusCode::kResourceExhausted));
  StepPlan plan;
  plan.slices.push_back(slice(1, {1, 2}, 0, {BlockIndex(0)}));
  BOOST_TEST(tiny.loaded.executor->execute(plan).ok());
}

BOOST_AUTO_TEST_CASE(memory_is_told_before_it_is_taken) {
  TinyModel tiny;
  const ModelConfig& config = tiny.loaded.description.config;
  // 2 layers, 2 kv heads of 8 padded to 16 dims, 16 tokens, keys and values, 2 bytes each.
  BOOST_TEST(Executor::block_bytes(config, KvType::kF16) == 2U * 2U * 16U * 16U * 2U * 2U);
  const KvLayout layout = tiny.loaded.backend->kv_layout(tiny.loaded.executor->kv().all);
  BOOST_TEST(Executor::block_bytes(config, layout.type) == layout.block_bytes * config.layers);
  // Half of it, and 16 scales of 4 bytes for each of the runs.
  BOOST_TEST(Executor::block_bytes(config, KvType::kInt8) == 2U * 2U * (16U * 16U + 64U) * 2U);
  BOOST_TEST(Executor::workspace_bytes(config, kLimits) > 4U * 4U * config.vocab);
}

}  // namespace
}  // namespace troupe::test
