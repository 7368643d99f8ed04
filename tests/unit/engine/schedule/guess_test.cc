// Guesses in the scheduler: what a step is asked to check, and what becomes of the answer.

#include <boost/test/unit_test.hpp>
#include <memory>
#include <vector>

#include "engine/schedule/scheduler.h"

using namespace troupe;

namespace {

using Tokens = std::vector<TokenId>;
constexpr TokenId kEnd = 99;

// One scheduler with one sequence, whose KV requests are all granted.
struct One {
  explicit One(SamplingParams params, Tokens prompt = {1, 2, 3, 4, 5, 6, 1, 2, 3},
               SchedulerOptions options = defaults())
      : scheduler(std::move(options)) {
    SequenceSpec spec;
    spec.id = SequenceId{1};
    spec.request = RequestId{1};
    spec.prompt = std::make_shared<const Tokens>(std::move(prompt));
    spec.params = std::make_shared<const SamplingParams>(std::move(params));
    BOOST_TEST_REQUIRE(scheduler.add(std::move(spec)).ok());
  }
  static SchedulerOptions defaults() {
    SchedulerOptions options;
    options.blocks_total = 100;
    options.context_tokens = 400;
    options.end_tokens = {kEnd};
    return options;
  }
  static SamplingParams at_most(uint32_t tokens) {
    SamplingParams params;
    params.max_tokens = tokens;
    return params;
  }
  // The next step's only slice.
  StepSlice step() {
    for (;;) {
      Actions actions = scheduler.take_actions();
      scheduler.check_invariants();
      take(actions);
      if (!actions.step) continue;
      number = actions.step->number;
      BOOST_TEST_REQUIRE(actions.step->slices.size() == 1U);
      return actions.step->slices[0];
    }
  }
  void take(const Actions& actions) {
    for (const Emission& emission : actions.emissions) {
      for (const SampledToken& token : emission.tokens) emitted.push_back(token.token);
      ended = ended || emission.end.has_value();
    }
    for (const KvRequest& request : actions.kv) {
      if (const auto* reserve = std::get_if<KvReserve>(&request)) grant(*reserve);
      if (const auto* extend = std::get_if<KvExtend>(&request)) grant(*extend);
      if (const auto* commit = std::get_if<KvCommit>(&request)) committed.push_back(*commit);
    }
  }
  void grant(const KvReserve& reserve) {
    KvReserved reply;
    reply.sequence = reserve.sequence;
    reply.attempt = reserve.attempt;
    while (held * kBlockTokens < reserve.cover_tokens) reply.blocks.push_back(BlockIndex{held++});
    scheduler.on_kv_reserved(reply);
  }
  void grant(const KvExtend& extend) {
    KvExtended reply;
    reply.number = extend.number;
    KvExtended::Grant grant{SequenceId{1}, held, {}};
    while (held < extend.items.at(0).blocks) grant.blocks.push_back(BlockIndex{held++});
    reply.grants.push_back(grant);
    scheduler.on_kv_extended(reply);
  }
  void finish(const Tokens& sampled) {
    StepResult result;
    result.number = number;
    result.slices.resize(1);
    result.slices[0].sequence = SequenceId{1};
    for (const TokenId token : sampled) result.slices[0].sampled.push_back({.token = token});
    scheduler.on_step_result(std::move(result));
    Actions actions = scheduler.take_actions();
    take(actions);
    if (!actions.step) return;
    next = actions.step->slices.at(0);
    number = actions.step->number;
  }

  Scheduler scheduler;
  uint64_t number = 0;
  uint32_t held = 0;
  StepSlice next;  // planned in the turn of the last finish()
  Tokens emitted;
  std::vector<KvCommit> committed;
  bool ended = false;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(guesses)

BOOST_AUTO_TEST_CASE(the_prompt_is_quoted_and_the_step_checks_the_quotation) {
  One one(One::at_most(50));
  BOOST_TEST(one.step().guesses == 0U);  // nothing is generated yet
  one.finish({4});                       // 1 2 3 4 stood there before, and 5 6 1 2 3 followed
  BOOST_TEST_REQUIRE(one.next.guesses > 0U);
  BOOST_TEST(one.next.tokens.size() == 1 + one.next.guesses);
  BOOST_TEST(one.next.tokens[0] == 4);
  BOOST_TEST(one.next.tokens[1] == 5);
  BOOST_TEST(one.next.position == 9U);
  BOOST_TEST(one.next.output_tokens == 1U);
}

BOOST_AUTO_TEST_CASE(right_guesses_are_emitted_at_once_and_wrong_ones_leave_no_trace) {
  One one(One::at_most(50));
  (void)one.step();
  one.finish({4});
  BOOST_TEST_REQUIRE(one.next.guesses >= 2U);
  one.finish({5, 42});  // one right, then something else
  BOOST_TEST(one.emitted == (Tokens{4, 5, 42}));
  BOOST_TEST(one.next.tokens == (Tokens{42}));
  BOOST_TEST(one.next.position == 11U);
  BOOST_TEST(one.scheduler.stats().right_tokens == 1U);
  BOOST_TEST(one.scheduler.stats().generated_tokens == 3U);
}

BOOST_AUTO_TEST_CASE(an_end_among_the_guesses_ends_the_sequence_there) {
  One one(One::at_most(50), {1, 2, 3, kEnd, 5, 6, 7, 1, 2});
  (void)one.step();
  one.finish({3});
  BOOST_TEST_REQUIRE(one.next.guesses >= 2U);
  one.finish({kEnd, 5, 6});
  BOOST_TEST(one.emitted == (Tokens{3, kEnd}));
  BOOST_TEST(one.ended);
  BOOST_TEST(one.scheduler.idle());
}

BOOST_AUTO_TEST_CASE(guesses_stop_short_of_max_tokens) {
  One one(One::at_most(3));
  (void)one.step();
  one.finish({4});
  BOOST_TEST(one.next.guesses ==
             1U);  // one right guess and the token after it are all there can be
  one.finish({5, 6});
  BOOST_TEST(one.emitted == (Tokens{4, 5, 6}));
  BOOST_TEST(one.ended);
}

BOOST_AUTO_TEST_CASE(guesses_stop_short_of_the_blocks_that_are_held) {
  SchedulerOptions options = One::defaults();
  options.context_tokens = 16;  // one block
  One one(One::at_most(50), {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}, options);
  (void)one.step();
  one.finish({4});
  // Positions 13 and 14 may hold guesses; the last token of a context needs no KV.
  BOOST_TEST(one.next.guesses == 2U);
  BOOST_TEST(one.next.blocks.size() == 1U);
}

BOOST_AUTO_TEST_CASE(blocks_filled_by_right_guesses_are_committed) {
  One one(One::at_most(50), {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1, 2, 3});
  (void)one.step();
  one.finish({4});
  BOOST_TEST_REQUIRE(one.next.guesses >= 2U);
  BOOST_TEST(one.committed.empty());
  one.finish({5, 6});  // positions 14 and 15 are computed: the block is full
  BOOST_TEST_REQUIRE(one.committed.size() == 1U);
  BOOST_TEST(one.committed[0].items.at(0).computed == 16U);
}

BOOST_AUTO_TEST_CASE(guesses_that_keep_being_wrong_are_given_up) {
  One one(One::at_most(300));
  (void)one.step();
  one.finish({4});
  TokenId token = 10;
  uint32_t guesses = 0;
  // The same three tokens again and again, and then always something new.
  for (int round = 0; round < 40; ++round) {
    for (const TokenId fixed : {1, 2, 3}) one.finish({fixed});
    guesses = one.next.guesses;
    one.finish({++token});
  }
  BOOST_TEST(guesses <= 1U);
  BOOST_TEST(one.scheduler.stats().guessed_tokens < 80U);
}

BOOST_AUTO_TEST_CASE(nothing_is_guessed_where_it_is_off) {
  SchedulerOptions options = One::defaults();
  options.guesses_max = 0;
  One one(One::at_most(50), {1, 2, 3, 4, 5, 6, 1, 2, 3}, options);
  (void)one.step();
  one.finish({4});
  BOOST_TEST(one.next.guesses == 0U);
}

BOOST_AUTO_TEST_SUITE_END()
