// What the scheduler does about the blocks of layers with a window.

#include "engine/kv/window.h"

#include <boost/test/unit_test.hpp>

#include "engine/schedule/scheduler.h"

namespace troupe {
namespace {

constexpr uint32_t kWindow = 32;

SchedulerOptions options() {
  SchedulerOptions options;
  options.blocks_total = 1000;
  options.window = kWindow;
  options.window_blocks_total = 20;
  options.context_tokens = 4096;
  options.step_tokens_max = 32;
  options.guesses_max = 0;
  return options;
}

SequenceSpec spec_of(uint64_t id, size_t prompt) {
  SamplingParams params;
  params.max_tokens = 50;
  params.ignore_eos = true;
  SequenceSpec spec;
  spec.id = SequenceId{id};
  spec.request = RequestId{id};
  spec.prompt = std::make_shared<const std::vector<TokenId>>(prompt, 7);
  spec.params = std::make_shared<const SamplingParams>(std::move(params));
  return spec;
}

// Blocks of either kind are numbered as they stand in the sequence; the windowed ones from 100 on.
KvReserved granted(const KvReserve& request, uint32_t window_first, uint32_t window_blocks) {
  KvReserved reply;
  reply.sequence = request.sequence;
  reply.attempt = request.attempt;
  reply.window_first = window_first;
  for (uint32_t i = 0; i < (request.cover_tokens + 15) / 16; ++i) reply.blocks.emplace_back(i);
  for (uint32_t i = 0; i < window_blocks; ++i)
    reply.window_blocks.emplace_back(100 + window_first + i);
  return reply;
}

void finish(Scheduler& scheduler, const StepPlan& plan) {
  StepResult result;
  result.number = plan.number;
  for (const StepSlice& slice : plan.slices) {
    result.slices.emplace_back().sequence = slice.sequence;
    if (slice.sample) result.slices.back().sampled = {{.token = 5}};
  }
  scheduler.on_step_result(std::move(result));
}

template <class Request>
std::vector<Request> all_of(const Actions& actions) {
  std::vector<Request> found;
  for (const KvRequest& request : actions.kv)
    if (const auto* one = std::get_if<Request>(&request)) found.push_back(*one);
  return found;
}

KvReserve add_and_reserve(Scheduler& scheduler, SequenceSpec spec) {
  BOOST_REQUIRE(scheduler.add(std::move(spec)).ok());
  const auto reserves = all_of<KvReserve>(scheduler.take_actions());
  BOOST_REQUIRE(reserves.size() == 1U);
  return reserves[0];
}

BOOST_AUTO_TEST_SUITE(windowed_blocks)

BOOST_AUTO_TEST_CASE(a_step_waits_for_its_windowed_blocks_and_names_what_it_sees) {
  Scheduler scheduler(options());
  const KvReserve reserve = add_and_reserve(scheduler, spec_of(1, 100));
  BOOST_TEST(reserve.window_blocks == window_blocks_needed(kWindow, 32));
  BOOST_TEST(reserve.window_blocks_later == window_blocks_needed(kWindow, kExtendAheadTokens));
  scheduler.on_kv_reserved(granted(reserve, 0, 3));
  const Actions first = scheduler.take_actions();
  BOOST_TEST(first.step->slices[0].tokens.size() == 32U);
  BOOST_TEST(first.step->slices[0].window_blocks.size() == 2U);
  finish(scheduler, *first.step);
  const Actions second = scheduler.take_actions();
  BOOST_TEST(second.step->slices[0].tokens.size() == 16U);  // as far as there are blocks
  finish(scheduler, *second.step);
  BOOST_TEST(!scheduler.take_actions().step);
  scheduler.on_kv_window(
      {.sequence = SequenceId{1}, .first_index = 3, .blocks = {BlockIndex{200}}});
  const Actions third = scheduler.take_actions();
  BOOST_TEST_REQUIRE(third.step.has_value());
  const StepSlice& slice = third.step->slices[0];
  BOOST_TEST(slice.position == 48U);
  BOOST_TEST(slice.window_first == 1U);
  BOOST_TEST_REQUIRE(slice.window_blocks.size() == 3U);
  BOOST_TEST(slice.window_blocks[0].value == 101U);
  BOOST_TEST(slice.window_blocks[2].value == 200U);
}

BOOST_AUTO_TEST_CASE(who_was_refused_asks_again_when_a_prompt_is_computed) {
  Scheduler scheduler(options());
  const KvReserve first = add_and_reserve(scheduler, spec_of(1, 48));
  scheduler.on_kv_reserved(granted(first, 0, 3));
  const Actions step = scheduler.take_actions();
  const KvReserve second = add_and_reserve(scheduler, spec_of(2, 48));
  scheduler.on_kv_refused({.sequence = second.sequence,
                           .attempt = second.attempt,
                           .blocks_needed = 3,
                           .blocks_available = 10,
                           .window_needed = 7,
                           .window_available = 5});
  finish(scheduler, *step.step);
  const Actions more = scheduler.take_actions();
  BOOST_TEST(all_of<KvReserve>(more).empty());
  BOOST_TEST(all_of<KvTrim>(more).empty());  // the first one goes on
  finish(scheduler, *more.step);
  const auto again = all_of<KvReserve>(scheduler.take_actions());
  BOOST_TEST_REQUIRE(again.size() == 1U);
  BOOST_TEST(again[0].sequence.value == 2U);
}

BOOST_AUTO_TEST_CASE(an_import_serves_as_far_as_its_window_is_whole) {
  for (const uint32_t blocks : {3U, 7U}) {
    Scheduler scheduler(options());
    SequenceSpec spec = spec_of(1, 100);
    spec.import_tokens_min = 20;
    const KvReserve reserve = add_and_reserve(scheduler, std::move(spec));
    BOOST_TEST(reserve.import_tokens == 99U);
    BOOST_TEST(reserve.import_below == 80U);
    const uint32_t kept = first_kept_block(99, kWindow);
    scheduler.on_kv_reserved(granted(reserve, kept, 7 - kept));
    const Actions actions = scheduler.take_actions();
    BOOST_TEST_REQUIRE(actions.imports.size() == 1U);
    BOOST_TEST(actions.imports[0].window_first == kept);
    BOOST_TEST(actions.imports[0].window_blocks.size() == 7 - kept);
    scheduler.on_import_ended(SequenceId{1}, blocks, 0);
    const Actions after = scheduler.take_actions();
    BOOST_TEST(after.step.has_value() == (blocks == 7U));
    BOOST_TEST(all_of<KvTrim>(after).size() == (blocks == 7U ? 0U : 1U));
    // Cut short, it is admitted anew, and nothing is imported any more.
    const auto reserves = all_of<KvReserve>(after);
    BOOST_TEST_REQUIRE(reserves.size() == (blocks == 7U ? 0U : 1U));
    if (!reserves.empty()) BOOST_TEST(reserves[0].import_below == 0U);
  }
}

BOOST_AUTO_TEST_CASE(a_pool_that_does_not_hold_one_window_refuses_at_once) {
  SchedulerOptions small = options();
  small.window_blocks_total = window_blocks_needed(kWindow, kExtendAheadTokens) - 1;
  Scheduler scheduler(small);
  const Status status = scheduler.add(spec_of(1, 100));
  BOOST_TEST((status.code() == StatusCode::kContextLength));
  BOOST_TEST(status.message().find("windowed") != std::string::npos, status.message());
  BOOST_TEST(scheduler.add(spec_of(2, 1)).ok());  // of a short one there are fewer
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
