#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>

#include "tests/property/kv/serving_world.h"

namespace troupe {
namespace {

constexpr TokenId kEnd = 0, kStopToken = 9;

SamplingParams at_most(uint32_t max_tokens) {
  SamplingParams params;
  params.max_tokens = max_tokens;
  return params;
}

std::vector<TokenId> prompt_of(size_t count, TokenId first = 100) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// A scheduler whose KV-cache manager has all the blocks in the world unless told otherwise, and
// whose device samples what the test says.
struct Bench {
  static SchedulerOptions defaults() {
    SchedulerOptions options;
    options.blocks_total = 1000;
    options.context_tokens = 4096;
    options.end_tokens = {kEnd};
    options.guesses_max = 0;  // guess_test.cc
    return options;
  }
  explicit Bench(SchedulerOptions options = defaults()) : scheduler(std::move(options)) {}

  Status add(uint64_t id, std::vector<TokenId> prompt, SamplingParams params,
             std::optional<TimePoint> deadline = {}) {
    SequenceSpec spec;
    spec.id = SequenceId{id};
    spec.request = RequestId{id};
    spec.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
    spec.params = std::make_shared<const SamplingParams>(std::move(params));
    spec.deadline = deadline;
    return scheduler.add(std::move(spec));
  }
  // Takes the actions and answers the KV messages among them. `refuse`: reserves get no blocks.
  Actions turn() {
    Actions actions = scheduler.take_actions();
    scheduler.check_invariants();
    for (const KvRequest& request : actions.kv) answer(request);
    emissions.insert(emissions.end(), actions.emissions.begin(), actions.emissions.end());
    return actions;
  }
  void answer(const KvRequest& request) {
    if (const auto* reserve = std::get_if<KvReserve>(&request)) {
      reserves.push_back(*reserve);
      if (refuse)
        scheduler.on_kv_refused({reserve->sequence, reserve->attempt, 2, 1});
      else
        grant(*reserve);
    }
    if (const auto* extend = std::get_if<KvExtend>(&request)) {
      ++extends;
      KvExtended reply;
      reply.number = extend->number;
      for (const auto& item : extend->items) {
        auto& held = blocks[item.sequence];
        KvExtended::Grant grant{item.sequence, static_cast<uint32_t>(held.size()), {}};
        while (held.size() < item.blocks) {
          held.push_back(BlockIndex{next_block++});
          grant.blocks.push_back(held.back());
        }
        reply.grants.push_back(grant);
      }
      scheduler.on_kv_extended(reply);
    }
    if (const auto* release = std::get_if<KvRelease>(&request))
      released.push_back(release->sequence.value);
  }
  void grant(const KvReserve& reserve) {
    KvReserved reply;
    reply.sequence = reserve.sequence;
    reply.attempt = reserve.attempt;
    reply.cached_tokens = cached;
    for (uint32_t i = 0; i < (reserve.cover_tokens + 15) / 16; ++i)
      reply.blocks.push_back(BlockIndex{next_block++});
    blocks[reserve.sequence] = reply.blocks;
    scheduler.on_kv_reserved(reply);
  }
  // The next step; there must be one.
  StepPlan step() {
    for (int turns = 0; turns < 4; ++turns) {
      Actions actions = turn();
      if (actions.step) return *std::move(actions.step);
    }
    BOOST_FAIL("no step was planned");
    return {};
  }
  void finish(const StepPlan& plan, TokenId token = 5) {
    StepResult result;
    result.number = plan.number;
    result.finished = result.started + tokens_of(plan) * token_time;
    for (const StepSlice& slice : plan.slices) {
      SliceResult& done = result.slices.emplace_back();
      done.sequence = slice.sequence;
      if (slice.sample) done.sampled = {{.token = token}};
      for (size_t i = slice.score_first + 1; slice.score_prompt && i < slice.tokens.size(); ++i)
        done.prompt_scores.push_back({.token = slice.tokens[i], .logprob = -1, .top = {}});
      if (slice.score_prompt && slice.next_token >= 0)
        done.prompt_scores.push_back({.token = slice.next_token, .logprob = -1, .top = {}});
      if (!slice.pooling) continue;
      done.pooled = slice.pooling->sums;
      done.pooled.resize(1);
      for (size_t i = slice.pooling->first; i < slice.tokens.size(); ++i)
        done.pooled[0] += slice.tokens[i];
    }
    scheduler.on_step_result(std::move(result));
  }
  // Runs one sequence with this one sampled token to its end.
  Emission::End run_to_end(TokenId token = 5) {
    for (int steps = 0; steps < 10'000; ++steps) {
      finish(step(), token);
      Actions actions = turn();
      for (Emission& emission : actions.emissions) {
        for (const SampledToken& sampled : emission.tokens) tokens.push_back(sampled.token);
        if (emission.end) return *emission.end;
      }
      if (actions.step) finish(*actions.step, token);
    }
    BOOST_FAIL("it does not end");
    return {};
  }

  Scheduler scheduler;
  std::vector<KvReserve> reserves;
  std::vector<uint64_t> released;
  std::vector<Emission> emissions;
  std::vector<TokenId> tokens;
  std::unordered_map<SequenceId, std::vector<BlockIndex>> blocks;
  bool refuse = false;
  Duration token_time{};  // that the device takes
  uint32_t cached = 0;
  uint32_t extends = 0;
  uint32_t next_block = 0;
};

BOOST_AUTO_TEST_CASE(nothing_to_do_means_no_actions) {
  Bench bench;
  BOOST_TEST(bench.turn().empty());
  BOOST_TEST(bench.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(decoding_sequences_come_first_and_prompt_chunks_fill_the_budget) {
  auto options = Bench::defaults();
  options.step_tokens_max = 64;
  Bench bench(options);
  BOOST_TEST(bench.add(1, prompt_of(100), at_most(50)).ok());
  const StepPlan first = bench.step();
  BOOST_TEST_REQUIRE(first.slices.size() == 1U);
  BOOST_TEST(first.slices[0].tokens.size() == 64U);
  BOOST_TEST(!first.slices[0].sample);
  BOOST_TEST(first.slices[0].blocks.size() == 4U);
  BOOST_TEST(bench.add(2, prompt_of(10), at_most(50)).ok());
  BOOST_TEST(bench.add(3, prompt_of(90), at_most(50)).ok());
  bench.turn();
  bench.finish(first);
  const StepPlan second = bench.step();
  BOOST_TEST_REQUIRE(second.slices.size() == 3U);
  BOOST_TEST(second.slices[0].position == 64U);
  BOOST_TEST(second.slices[0].sample);
  BOOST_TEST(second.slices[1].sample);
  BOOST_TEST(second.slices[2].tokens.size() == 64U - 36U - 10U);
  bench.finish(second);
  const StepPlan third = bench.step();
  BOOST_TEST_REQUIRE(third.slices.size() == 3U);
  BOOST_TEST(third.slices[0].tokens.size() == 1U);
  BOOST_TEST(third.slices[1].tokens.size() == 1U);
  BOOST_TEST(third.slices[2].tokens.size() == 62U);
}

BOOST_AUTO_TEST_CASE(a_step_computes_as_much_of_prompts_as_its_time_allows) {
  SchedulerOptions options = Bench::defaults();
  options.step_time = std::chrono::milliseconds(100);
  Bench bench(options);
  bench.token_time = std::chrono::milliseconds(1);
  BOOST_REQUIRE(bench.add(1, prompt_of(70), at_most(50)).ok());
  bench.finish(bench.step());
  bench.finish(bench.step());  // 1 decodes from now on
  BOOST_REQUIRE(bench.add(2, prompt_of(150), at_most(5)).ok());
  BOOST_REQUIRE(bench.add(3, prompt_of(90), at_most(5)).ok());
  const auto shape = [&bench] {
    const StepPlan plan = bench.step();
    std::vector<std::pair<uint64_t, size_t>> slices;
    for (const StepSlice& slice : plan.slices)
      slices.emplace_back(slice.sequence.value, slice.tokens.size());
    bench.finish(plan);
    return slices;
  };
  using Slices = std::vector<std::pair<uint64_t, size_t>>;
  while (shape() == Slices{{1, 1}}) continue;  // the two are being admitted
  BOOST_TEST((shape() == Slices{{1, 1}, {2, 51}, {3, 48}}));
  BOOST_TEST((shape() == Slices{{1, 1}, {2, 1}, {3, 42}}));
}

BOOST_AUTO_TEST_CASE(one_step_is_in_flight_at_a_time_and_a_repeated_result_is_ignored) {
  Bench bench;
  BOOST_TEST(bench.add(1, prompt_of(5), at_most(3)).ok());
  const StepPlan plan = bench.step();
  BOOST_TEST(!bench.turn().step.has_value());
  bench.finish(plan);
  bench.finish(plan);
  const Actions actions = bench.turn();
  BOOST_TEST_REQUIRE(actions.emissions.size() == 1U);
  BOOST_TEST(actions.emissions[0].tokens.size() == 1U);
  BOOST_TEST(actions.step.has_value());
}

BOOST_AUTO_TEST_CASE(an_end_token_stops_unless_ignored_and_is_part_of_the_output) {
  Bench bench;
  BOOST_TEST(bench.add(1, prompt_of(5), at_most(3)).ok());
  const auto end = bench.run_to_end(kEnd);
  BOOST_TEST((end.reason == FinishReason::kStop));
  BOOST_TEST(end.stop_token == kEnd);
  BOOST_TEST(bench.tokens == std::vector<TokenId>{kEnd}, boost::test_tools::per_element());

  Bench other;
  SamplingParams params = at_most(3);
  params.ignore_eos = true;
  BOOST_TEST(other.add(1, prompt_of(5), params).ok());
  const auto length = other.run_to_end(kEnd);
  BOOST_TEST((length.reason == FinishReason::kLength));
  BOOST_TEST(length.stop_token == -1);
}

// The scheduler only hands it on.
struct FakeMatcher final : GrammarMatcher {
  Status fill_mask(std::span<uint32_t>) override { return ok_status(); }
  Status accept(TokenId) override { return ok_status(); }
  [[nodiscard]] bool ended() const override { return false; }
  [[nodiscard]] uint32_t accepted() const override { return 0; }
};

BOOST_AUTO_TEST_CASE(a_grammar_goes_with_the_slices_that_sample_and_its_end_ends_the_sequence) {
  SchedulerOptions options = Bench::defaults();
  options.step_tokens_max = 4;
  Bench bench(options);
  SequenceSpec spec;
  spec.id = SequenceId{1};
  spec.prompt = std::make_shared<const std::vector<TokenId>>(prompt_of(6));
  SamplingParams params = at_most(9);
  params.ignore_eos = true;
  params.min_tokens = 5;
  spec.params = std::make_shared<const SamplingParams>(params);
  const auto grammar = std::make_shared<FakeMatcher>();
  spec.grammar = grammar;
  BOOST_TEST(bench.scheduler.add(std::move(spec)).ok());
  const StepPlan chunk = bench.step();
  BOOST_TEST(chunk.slices[0].grammar == nullptr);  // nothing is sampled yet
  bench.finish(chunk);
  const StepPlan plan = bench.step();
  BOOST_TEST(plan.slices[0].grammar == grammar);
  StepResult result;
  result.number = plan.number;
  SliceResult& slice = result.slices.emplace_back();
  slice.sequence = SequenceId{1};
  slice.grammar_ended = true;
  slice.sampled = {{.token = kEnd}};
  bench.scheduler.on_step_result(std::move(result));
  const Actions actions = bench.turn();
  BOOST_REQUIRE(actions.emissions.size() == 1U);
  BOOST_REQUIRE(actions.emissions[0].end.has_value());
  BOOST_TEST((actions.emissions[0].end->reason == FinishReason::kStop));
  BOOST_TEST(actions.emissions[0].end->stop_token == kEnd);
  BOOST_TEST(bench.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(a_stop_token_counts_only_after_min_tokens) {
  Bench bench;
  SamplingParams params = at_most(10);
  params.stop_token_ids = {kStopToken};
  params.min_tokens = 3;
  BOOST_TEST(bench.add(1, prompt_of(5), params).ok());
  for (int i = 0; i < 3; ++i) {
    const StepPlan plan = bench.step();
    BOOST_TEST(plan.slices[0].output_tokens == static_cast<uint32_t>(i));
    bench.finish(plan, kStopToken);
  }
  BOOST_TEST(bench.scheduler.stats().running == 1U);
  bench.finish(bench.step(), kStopToken);
  const Actions actions = bench.turn();
  BOOST_TEST_REQUIRE(actions.emissions.size() == 1U);
  BOOST_TEST_REQUIRE(actions.emissions[0].end.has_value());
  BOOST_TEST(actions.emissions[0].end->stop_token == kStopToken);
  BOOST_TEST(bench.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(the_contexts_end_is_a_length_end) {
  auto options = Bench::defaults();
  options.context_tokens = 20;
  Bench bench(options);
  BOOST_TEST(bench.add(1, prompt_of(17), at_most(100)).ok());
  const auto end = bench.run_to_end();
  BOOST_TEST((end.reason == FinishReason::kLength));
  BOOST_TEST(bench.scheduler.stats().generated_tokens == 3U);
}

BOOST_AUTO_TEST_CASE(what_can_never_fit_is_refused_at_once_with_both_numbers) {
  auto options = Bench::defaults();
  options.context_tokens = 512;
  options.blocks_total = 8;
  Bench bench(options);
  const auto refused = [&bench](std::vector<TokenId> prompt, SamplingParams params) {
    const Status status = bench.add(1, std::move(prompt), std::move(params));
    BOOST_TEST(!status.ok());
    return status;
  };
  const Status context = refused(prompt_of(512), at_most(1));
  BOOST_TEST((context.code() == StatusCode::kContextLength));
  BOOST_TEST(context.message().find("512") != std::string::npos);
  const Status pool = refused(prompt_of(100), at_most(30));
  BOOST_TEST((pool.code() == StatusCode::kContextLength));
  BOOST_TEST(pool.message().find("144") != std::string::npos);
  BOOST_TEST(pool.message().find("128") != std::string::npos);
  BOOST_TEST((refused({}, at_most(1)).code() == StatusCode::kInvalidArgument));
  BOOST_TEST((refused(prompt_of(5), at_most(0)).code() == StatusCode::kInvalidArgument));
  // The last token needs no place of its own.
  BOOST_TEST(bench.add(1, prompt_of(100), at_most(29)).ok());
  BOOST_TEST((bench.add(1, prompt_of(5), at_most(1)).code() == StatusCode::kInvalidArgument));
}

BOOST_AUTO_TEST_CASE(a_full_queue_says_so_at_once) {
  auto options = Bench::defaults();
  options.waiting_max = 2;
  Bench bench(options);
  BOOST_TEST(bench.add(1, prompt_of(5), at_most(1)).ok());
  BOOST_TEST(bench.add(2, prompt_of(5), at_most(1)).ok());
  const Status full = bench.add(3, prompt_of(5), at_most(1));
  BOOST_TEST((full.code() == StatusCode::kResourceExhausted));
  bench.scheduler.cancel(SequenceId{1});
  BOOST_TEST(bench.add(3, prompt_of(5), at_most(1)).ok());
}

BOOST_AUTO_TEST_CASE(scores_of_prompt_tokens_come_once_each_across_chunks_and_without_output) {
  auto options = Bench::defaults();
  options.step_tokens_max = 7;
  Bench bench(options);
  SamplingParams params = at_most(0);
  params.prompt_logprobs = 0;
  BOOST_TEST(bench.add(1, prompt_of(20), params).ok());
  while (!bench.scheduler.idle()) {
    const StepPlan plan = bench.step();
    BOOST_TEST(!plan.slices[0].sample);
    bench.finish(plan);
  }
  bench.turn();
  std::vector<TokenId> scored;
  for (const Emission& emission : bench.emissions) {
    BOOST_TEST(emission.tokens.empty());
    for (const SampledToken& score : emission.prompt_scores) scored.push_back(score.token);
  }
  BOOST_TEST_REQUIRE(bench.emissions.back().end.has_value());
  BOOST_TEST((bench.emissions.back().end->reason == FinishReason::kLength));
  auto expected = prompt_of(20);
  expected.erase(expected.begin());
  BOOST_TEST(scored == expected, boost::test_tools::per_element());
  BOOST_TEST(bench.reserves.at(0).reuse_tokens_max == 0U);
}

BOOST_AUTO_TEST_CASE(scores_from_a_token_on_let_the_cache_serve_what_stands_before) {
  Bench bench;
  bench.cached = 16;
  SamplingParams params = at_most(0);
  params.prompt_logprobs = 0;
  params.score_from = 18;
  BOOST_TEST(bench.add(1, prompt_of(20), params).ok());
  bench.finish(bench.step());
  bench.turn();
  BOOST_TEST(bench.reserves.at(0).reuse_tokens_max == 17U);
  BOOST_TEST_REQUIRE(bench.emissions.size() == 1U);
  BOOST_TEST_REQUIRE(bench.emissions[0].prompt_scores.size() == 2U);
  BOOST_TEST(bench.emissions[0].prompt_scores[0].token == 118);
  BOOST_TEST(bench.emissions[0].prompt_scores[1].token == 119);
}

BOOST_AUTO_TEST_CASE(the_mean_of_a_prompt_is_gathered_over_its_chunks_and_ends_it) {
  SchedulerOptions options = Bench::defaults();
  options.step_tokens_max = 7;
  Bench bench(options);
  SamplingParams params = at_most(0);
  params.pooling = Pooling::kMean;
  BOOST_TEST(bench.add(1, prompt_of(20), params).ok());
  while (!bench.scheduler.idle()) bench.finish(bench.step());
  bench.turn();
  BOOST_TEST_REQUIRE(bench.emissions.size() == 1U);
  BOOST_TEST(bench.emissions[0].tokens.empty());
  BOOST_TEST(bench.emissions[0].end.has_value());
  BOOST_TEST_REQUIRE(bench.emissions[0].embedding.size() == 1U);
  BOOST_TEST(bench.emissions[0].embedding[0] == 109.5F);  // tokens 100 to 119
  // Every row must be computed, cached or not.
  BOOST_TEST(bench.reserves.at(0).reuse_tokens_max == 0U);
}

BOOST_AUTO_TEST_CASE(the_last_row_of_a_prompt_needs_no_other_and_may_follow_a_cached_prefix) {
  Bench bench;
  bench.cached = 16;
  SamplingParams params = at_most(0);
  params.pooling = Pooling::kLast;
  BOOST_TEST(bench.add(1, prompt_of(20), params).ok());
  const StepPlan plan = bench.step();
  BOOST_TEST_REQUIRE(plan.slices[0].pooling.has_value());
  BOOST_TEST(plan.slices[0].pooling->first == 3U);
  bench.finish(plan);
  bench.turn();
  BOOST_TEST_REQUIRE(bench.emissions.size() == 1U);
  BOOST_TEST(bench.emissions[0].embedding.at(0) == 119.0F);
  BOOST_TEST(bench.emissions[0].end->cached_tokens == 16U);
}

BOOST_AUTO_TEST_CASE(a_pooled_prompt_with_output_or_scores_is_refused) {
  Bench bench;
  for (const bool scored : {false, true}) {
    SamplingParams params = at_most(scored ? 0 : 1);
    params.pooling = Pooling::kLast;
    if (scored) params.prompt_logprobs = 0;
    const Status refused = bench.add(1, prompt_of(3), params);
    BOOST_TEST((refused.code() == StatusCode::kInvalidArgument));
    BOOST_TEST(refused.param() == "pooling");
  }
}

BOOST_AUTO_TEST_CASE(the_history_is_copied_only_for_samplers_that_need_it) {
  Bench bench;
  SamplingParams params = at_most(9);
  params.repetition_penalty = 1.2F;
  BOOST_TEST(bench.add(1, prompt_of(5), params).ok());
  BOOST_TEST(bench.add(2, prompt_of(5), at_most(9)).ok());
  bench.finish(bench.step());
  const StepPlan plan = bench.step();
  BOOST_TEST_REQUIRE(plan.slices.size() == 2U);
  auto expected = prompt_of(5);
  expected.push_back(5);
  BOOST_TEST(plan.slices[0].history == expected, boost::test_tools::per_element());
  BOOST_TEST(plan.slices[0].prompt_tokens == 5U);
  BOOST_TEST(plan.slices[1].history.empty());
}

BOOST_AUTO_TEST_CASE(cancel_in_every_state_gives_blocks_back_without_new_traffic) {
  Bench bench;
  BOOST_TEST(bench.add(1, prompt_of(5), at_most(9)).ok());
  bench.scheduler.cancel(SequenceId{1});  // nothing was asked for yet
  BOOST_TEST(bench.turn().empty());

  BOOST_TEST(bench.add(2, prompt_of(5), at_most(9)).ok());
  Actions asked = bench.scheduler.take_actions();
  bench.scheduler.cancel(SequenceId{2});  // the reserve is on its way
  bench.turn();
  BOOST_TEST(bench.released == std::vector<uint64_t>{2}, boost::test_tools::per_element());
  bench.answer(asked.kv.at(0));  // too late

  BOOST_TEST(bench.add(3, prompt_of(5), at_most(9)).ok());
  const StepPlan plan = bench.step();
  bench.scheduler.cancel(SequenceId{3});  // a step uses the blocks
  BOOST_TEST(bench.turn().empty());
  bench.finish(plan);
  const Actions after = bench.turn();
  BOOST_TEST(after.emissions.empty());
  BOOST_TEST(bench.released.back() == 3U);
  BOOST_TEST(bench.scheduler.idle());
  bench.scheduler.cancel(SequenceId{99});
}

BOOST_AUTO_TEST_CASE(a_block_is_asked_for_before_it_is_needed_and_never_beyond_the_end) {
  Bench bench;
  BOOST_TEST(bench.add(1, prompt_of(10), at_most(30)).ok());
  uint32_t steps = 0;
  while (!bench.scheduler.idle()) {
    const StepPlan plan = bench.step();
    ++steps;
    bench.finish(plan);
    if (bench.scheduler.stats().running == 0) break;
  }
  bench.turn();
  BOOST_TEST(steps == 30U);
  // 10 + 30 - 1 tokens: three blocks, of which the reserve brought the first.
  BOOST_TEST(bench.blocks[SequenceId{1}].size() == 3U);
  BOOST_TEST(bench.extends == 2U);
}

BOOST_AUTO_TEST_CASE(waiting_sequences_are_admitted_in_order_of_urgency) {
  auto options = Bench::defaults();
  options.running_max = 1;
  options.ageing = std::chrono::seconds(10);
  Bench bench(options);
  BOOST_TEST(bench.add(1, prompt_of(5), at_most(1)).ok());
  BOOST_TEST(bench.add(2, prompt_of(5), at_most(1)).ok());
  BOOST_TEST(bench.add(3, prompt_of(5), at_most(1), TimePoint{} + std::chrono::seconds(5)).ok());
  BOOST_TEST(bench.add(4, prompt_of(5), at_most(1), TimePoint{} + std::chrono::hours(1)).ok());
  for (int i = 0; i < 4; ++i) bench.finish(bench.step());
  bench.turn();
  std::vector<uint64_t> order;
  for (const KvReserve& reserve : bench.reserves) order.push_back(reserve.sequence.value);
  // The far deadline has aged into the order of arrival.
  const std::vector<uint64_t> expected{3, 1, 2, 4};
  BOOST_TEST(order == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_refused_sequence_is_passed_a_bounded_number_of_times_and_not_polled) {
  auto options = Bench::defaults();
  options.passes_max = 2;
  options.running_max = 2;
  Bench bench(options);
  bench.refuse = true;
  BOOST_TEST(bench.add(1, prompt_of(500), at_most(1)).ok());
  bench.turn();
  BOOST_TEST(bench.turn().empty());  // nothing was given back: no second try
  bench.refuse = false;
  uint32_t admitted = 0;
  for (uint64_t id = 2; id <= 9; ++id) {
    BOOST_TEST(bench.add(id, prompt_of(5), at_most(1)).ok());
    Actions actions = bench.scheduler.take_actions();
    for (const KvRequest& request : actions.kv) {
      const auto* reserve = std::get_if<KvReserve>(&request);
      if (reserve == nullptr) continue;
      if (reserve->sequence == SequenceId{1}) {
        bench.scheduler.on_kv_refused({reserve->sequence, reserve->attempt, 2, 1});
      } else {
        bench.grant(*reserve);
        ++admitted;
      }
    }
  }
  BOOST_TEST(admitted == 2U);
}

BOOST_AUTO_TEST_CASE(when_the_device_is_gone_everyone_fails_and_all_is_released) {
  Bench bench;
  for (uint64_t id = 1; id <= 3; ++id) BOOST_TEST(bench.add(id, prompt_of(5), at_most(9)).ok());
  const StepPlan plan = bench.step();
  BOOST_TEST(bench.add(4, prompt_of(5), at_most(9)).ok());
  bench.scheduler.fail_all({StatusCode::kUnavailable, "the device is gone"});
  const Actions actions = bench.turn();
  BOOST_TEST(actions.emissions.size() == 4U);
  for (const Emission& emission : actions.emissions)
    BOOST_TEST((emission.failed.code() == StatusCode::kUnavailable));
  BOOST_TEST(bench.released.size() == 3U);
  BOOST_TEST(bench.scheduler.idle());
  bench.finish(plan);  // a late result
  BOOST_TEST(bench.turn().empty());
}

// --- with the real KV-cache manager -------------------------------------------------------------

SequenceSpec importing(uint64_t id, std::vector<TokenId> prompt, uint32_t tokens_min) {
  SequenceSpec spec;
  spec.id = SequenceId{id};
  spec.request = RequestId{id};
  spec.prompt = std::make_shared<const std::vector<TokenId>>(std::move(prompt));
  spec.params = std::make_shared<const SamplingParams>(at_most(2));
  spec.import_tokens_min = tokens_min;
  return spec;
}

// What of the KV messages are leases and their ends, in order.
std::vector<std::string> lease_messages(const Actions& actions) {
  std::vector<std::string> names;
  for (const KvRequest& request : actions.kv) {
    if (const auto* lease = std::get_if<KvLease>(&request))
      names.push_back("lease " + std::to_string(lease->first_block));
    if (std::holds_alternative<KvEndLease>(request)) names.emplace_back("end");
    if (const auto* commit = std::get_if<KvCommit>(&request))
      names.push_back("commit " + std::to_string(commit->items[0].computed));
    if (std::holds_alternative<KvRelease>(request)) names.emplace_back("release");
  }
  return names;
}

BOOST_AUTO_TEST_CASE(an_import_leases_what_is_not_cached_and_leaves_the_last_token_to_compute) {
  Bench bench;
  bench.cached = 35;  // two blocks, and three tokens by copy
  BOOST_TEST(bench.scheduler.add(importing(1, prompt_of(100), 20)).ok());
  bench.turn();
  Actions actions = bench.turn();
  BOOST_TEST_REQUIRE(actions.imports.size() == 1U);
  const Import& import = actions.imports[0];
  BOOST_TEST(import.first_block == 2U);
  BOOST_TEST(import.tokens == 99U);
  BOOST_TEST(import.blocks.size() == 5U);
  BOOST_TEST(import.blocks[0] == bench.blocks[SequenceId{1}][2]);
  BOOST_TEST(lease_messages(actions) == std::vector<std::string>{"lease 2"},
             boost::test_tools::per_element());
  BOOST_TEST(!actions.step.has_value());  // it rests
  BOOST_TEST(bench.scheduler.queued_tokens() == 0U);
  bench.scheduler.on_import_ended(SequenceId{1}, 5, 64);
  actions = bench.turn();
  BOOST_TEST((lease_messages(actions) == std::vector<std::string>{"end", "commit 99"}));
  BOOST_TEST_REQUIRE(actions.step.has_value());
  BOOST_TEST(actions.step->slices[0].position == 99U);
  BOOST_TEST(actions.step->slices[0].tokens.size() == 1U);
  BOOST_TEST(actions.step->slices[0].sample);
  BOOST_TEST(actions.step->copies.empty());
  bench.finish(*actions.step);
  BOOST_TEST(bench.run_to_end().cached_tokens == 64U);
}

BOOST_AUTO_TEST_CASE(an_import_that_was_cut_short_is_completed_by_computing) {
  Bench bench;
  BOOST_TEST(bench.scheduler.add(importing(1, prompt_of(100), 20)).ok());
  bench.turn();
  BOOST_TEST(bench.turn().imports.size() == 1U);
  bench.scheduler.on_import_ended(SequenceId{1}, 3, 0);
  bench.scheduler.on_import_ended(SequenceId{1}, 6, 0);  // once is enough
  const StepPlan plan = bench.step();
  BOOST_TEST(plan.slices[0].position == 48U);
  BOOST_TEST(plan.slices[0].tokens.size() == 52U);
}

BOOST_AUTO_TEST_CASE(what_is_cached_well_enough_is_not_imported) {
  Bench bench;
  bench.cached = 90;
  BOOST_TEST(bench.scheduler.add(importing(1, prompt_of(100), 20)).ok());
  bench.turn();
  const Actions actions = bench.turn();
  BOOST_TEST(actions.imports.empty());
  BOOST_TEST(actions.step.has_value());
}

BOOST_AUTO_TEST_CASE(a_cancelled_import_keeps_its_blocks_until_nothing_writes_them) {
  Bench bench;
  BOOST_TEST(bench.scheduler.add(importing(1, prompt_of(100), 20)).ok());
  bench.turn();
  bench.turn();
  bench.scheduler.cancel(SequenceId{1});
  BOOST_TEST(bench.turn().empty());
  BOOST_TEST(!bench.scheduler.idle());
  bench.scheduler.on_import_ended(SequenceId{1}, 2, 0);
  BOOST_TEST(
      (lease_messages(bench.turn()) == std::vector<std::string>{"end", "commit 32", "release"}));
  BOOST_TEST(bench.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(a_failed_device_fails_an_importing_sequence_at_once_and_keeps_its_blocks) {
  Bench bench;
  BOOST_TEST(bench.scheduler.add(importing(1, prompt_of(100), 20)).ok());
  bench.turn();
  bench.turn();
  bench.scheduler.fail_all({StatusCode::kUnavailable, "gone"});
  const Actions actions = bench.turn();
  BOOST_TEST_REQUIRE(actions.emissions.size() == 1U);
  BOOST_TEST(!actions.emissions[0].failed.ok());
  BOOST_TEST(actions.kv.empty());
  bench.scheduler.on_import_ended(SequenceId{1}, 0, 0);
  BOOST_TEST((lease_messages(bench.turn()) == std::vector<std::string>{"end", "release"}));
  BOOST_TEST(bench.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(a_prompt_computed_for_others_ends_without_a_token_and_keeps_its_blocks) {
  Bench bench;
  SequenceSpec spec = importing(1, prompt_of(100), 0);
  spec.params = std::make_shared<const SamplingParams>(at_most(0));
  spec.prefill_only = true;
  BOOST_TEST(bench.scheduler.add(std::move(spec)).ok());
  const StepPlan plan = bench.step();
  BOOST_TEST(!plan.slices[0].sample);
  bench.finish(plan);
  const Actions actions = bench.turn();
  BOOST_TEST_REQUIRE(actions.emissions.size() == 1U);
  BOOST_TEST(actions.emissions[0].tokens.empty());
  BOOST_TEST(actions.emissions[0].end.has_value());
  BOOST_TEST(bench.released.empty());
  BOOST_TEST(bench.turn().empty());
  bench.scheduler.cancel(SequenceId{1});
  bench.turn();
  BOOST_TEST(bench.released.size() == 1U);
  BOOST_TEST(bench.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(sixteen_requests_compute_their_shared_prefix_once) {
  WorldOptions options;
  options.blocks = 200;
  ServingWorld world(options, 1);
  for (TokenId i = 0; i < 16; ++i) {
    auto prompt = prompt_of(1024, 1);
    for (TokenId k = 0; k < 8; ++k) prompt.push_back(2000 + i * 10 + k);
    BOOST_TEST(world.add(prompt, at_most(4)).ok());
  }
  world.run();
  BOOST_TEST(world.device().tokens_computed() < 1024U + 16U * (8U + 4U) + 1U);
  for (const auto& [id, client] : world.clients())
    BOOST_TEST(client.end->cached_tokens == (id.value == 1 ? 0U : 1024U));
}

BOOST_AUTO_TEST_CASE(a_pool_far_too_small_costs_time_and_no_token) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    WorldOptions options;
    options.blocks = 16;
    ServingWorld world(options, seed);
    for (TokenId i = 0; i < 16; ++i) {
      SamplingParams params = at_most(200);
      params.ignore_eos = true;
      params.seed = static_cast<uint64_t>(i);
      BOOST_TEST(world.add(prompt_of(20, i), params).ok());
    }
    world.run();
    BOOST_TEST(world.scheduler().stats().preemptions > 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_large_request_is_refused_and_small_ones_behind_it_are_served) {
  WorldOptions options;
  options.blocks = 64;
  options.context_tokens = 8192;
  ServingWorld world(options, 1);
  BOOST_TEST((world.add(prompt_of(2000), at_most(10)).code() == StatusCode::kContextLength));
  for (int i = 0; i < 5; ++i) BOOST_TEST(world.add(prompt_of(20), at_most(10)).ok());
  world.run();
}

BOOST_AUTO_TEST_CASE(outputs_do_not_depend_on_the_chunking) {
  for (const uint32_t budget : {1U, 3U, 15U, 16U, 17U, 100U, 512U}) {
    WorldOptions options;
    options.scheduler.step_tokens_max = budget;
    ServingWorld world(options, budget);
    for (TokenId i = 0; i < 8; ++i)
      BOOST_TEST(world.add(prompt_of(30 + 7 * static_cast<size_t>(i), i), at_most(20)).ok());
    world.run();  // compares with each one alone
  }
}

BOOST_AUTO_TEST_CASE(a_sequence_whose_logits_are_no_numbers_fails_alone_and_leaves_no_cache) {
  Bench bench;
  BOOST_REQUIRE(bench.add(1, prompt_of(20), at_most(3)).ok());
  BOOST_REQUIRE(bench.add(2, prompt_of(20, 500), at_most(3)).ok());
  const StepPlan plan = bench.step();
  BOOST_REQUIRE(plan.slices.size() == 2U);
  StepResult result{plan.number, {}, {}, {}};
  result.slices.resize(2);
  result.slices[0].sequence = plan.slices[0].sequence;
  result.slices[0].status = {StatusCode::kInternal, "NaN"};
  result.slices[1].sequence = plan.slices[1].sequence;
  result.slices[1].sampled = {{.token = 5}};
  bench.scheduler.on_step_result(std::move(result));
  const Actions actions = bench.turn();
  BOOST_REQUIRE(actions.emissions.size() == 2U);
  BOOST_TEST((actions.emissions[0].failed.code() == StatusCode::kInternal));
  BOOST_TEST(actions.emissions[1].tokens.size() == 1U);
  BOOST_TEST((bench.released == std::vector<uint64_t>{1}));
  for (const KvRequest& request : actions.kv) {
    const auto* commit = std::get_if<KvCommit>(&request);
    if (commit == nullptr) continue;
    for (const auto& item : commit->items) BOOST_TEST(item.sequence == SequenceId{2});
  }
}

}  // namespace
}  // namespace troupe
