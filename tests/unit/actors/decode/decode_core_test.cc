#include "actors/decode/decode_core.h"

#include <boost/test/unit_test.hpp>

#include <deque>

#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "base/limits.h"
#include "engine/kv/block_hash.h"
#include "tests/unit/actors/fake_outbox.h"

namespace troupe {
namespace {

constexpr TokenId kEnd = 2;

// A worker whose KV-cache manager is the real one and whose device says the next token as a
// function of the position. Nothing happens until pump() or step() is called.
struct Fixture final : WorkerPorts {
  explicit Fixture(uint32_t blocks = 16) : manager({blocks}, hasher), decode(make(blocks)) {}

  std::unique_ptr<DecodeCore> make(uint32_t blocks) {
    DecodeOptions options;
    options.scheduler.blocks_total = blocks;
    options.scheduler.context_tokens = 2048;
    options.scheduler.end_tokens = {kEnd};
    return std::make_unique<DecodeCore>(clock, outbox, *this, nullptr, metrics, options);
  }
  void ask_kv(std::vector<KvRequest> requests) override { kv.push_back(std::move(requests)); }
  void submit(StepPlan plan) override { plans.push_back(std::move(plan)); }

  // Answers what the KV-cache manager was asked.
  void pump() {
    while (!kv.empty()) {
      const auto requests = std::move(kv.front());
      kv.pop_front();
      std::vector<KvReply> replies;
      manager.on_requests(requests, replies);
      decode->on_kv_replies(replies, manager.stats());
    }
    decode->check_invariants();
    manager.check_invariants();
  }
  StepResult execute(const StepPlan& plan) {
    StepResult result{plan.number, {}, clock.now(), clock.now() + std::chrono::milliseconds(5)};
    for (const StepSlice& slice : plan.slices) {
      SliceResult& out = result.slices.emplace_back();
      out.sequence = slice.sequence;
      if (!slice.sample) continue;
      const size_t position = slice.position + slice.tokens.size();
      out.sampled = {{.token = static_cast<TokenId>(100 + position)}};
    }
    return result;
  }
  void step() {
    BOOST_REQUIRE(!plans.empty());
    const StepPlan plan = std::move(plans.front());
    plans.pop_front();
    decode->on_step_done(execute(plan));
    pump();
  }
  void run() {
    pump();
    while (!plans.empty()) step();
  }
  void route(uint64_t id, uint32_t choices = 1, uint32_t max_tokens = 4, uint32_t attempt = 1) {
    wire::Routed routed;
    routed.attempt = attempt;
    routed.router = "router";
    routed.request.id = RequestId(id);
    routed.request.gateway = "g";
    routed.request.prompt = {5, 6, 7};
    for (uint32_t i = 0; i < choices; ++i) {
      SamplingParams params;
      params.max_tokens = max_tokens;
      routed.request.sequences.push_back({SequenceId(id * 10 + i + attempt * 1000), params});
    }
    decode->on_routed(routed);
  }
  std::vector<wire::Emission> emissions() const {
    std::vector<wire::Emission> out;
    for (const auto& message : outbox.take<wire::Emitted>("g")) {
      out.insert(out.end(), message.emissions.begin(), message.emissions.end());
    }
    return out;
  }
  size_t ends() const {
    const auto all = emissions();
    return static_cast<size_t>(
        std::count_if(all.begin(), all.end(), [](const auto& e) { return e.end.has_value(); }));
  }
  std::vector<wire::Finished> finished() const { return outbox.take<wire::Finished>("router"); }
  uint32_t used() const {
    const KvStats stats = manager.stats();
    return stats.blocks_computing + stats.blocks_held;
  }

  ManualClock clock;
  FakeOutbox outbox;
  ServingMetrics metrics{"m"};
  Xxh3BlockHasher hasher{1};
  KvCacheManagerCore manager;
  std::deque<std::vector<KvRequest>> kv;
  std::deque<StepPlan> plans;
  std::unique_ptr<DecodeCore> decode;
};

BOOST_AUTO_TEST_SUITE(decode_core)

BOOST_AUTO_TEST_CASE(a_routed_request_is_generated_emitted_and_finished_once) {
  Fixture f;
  f.route(1);
  f.run();
  std::vector<TokenId> tokens;
  for (const auto& emission : f.emissions()) {
    BOOST_TEST(emission.first_index == tokens.size());
    BOOST_TEST(emission.attempt == 1U);
    for (const auto& token : emission.tokens) tokens.push_back(token.token);
  }
  BOOST_TEST((tokens == std::vector<TokenId>{103, 104, 105, 106}));
  BOOST_TEST(f.ends() == 1U);
  BOOST_TEST((f.emissions().back().end->reason == FinishReason::kLength));
  BOOST_TEST(f.finished().size() == 1U);
  BOOST_TEST(f.decode->idle());
  BOOST_TEST(f.used() == 0U);
}

// When the worker is lost between the two, the router must still know of the request: only it can
// tell the gateway then.
BOOST_AUTO_TEST_CASE(the_router_hears_of_an_end_after_the_last_tokens_have_left) {
  Fixture f;
  f.route(1);
  f.run();
  BOOST_REQUIRE(f.outbox.sent.size() >= 2U);
  BOOST_TEST(std::holds_alternative<wire::Finished>(f.outbox.sent.back().second));
  BOOST_TEST(std::holds_alternative<wire::Emitted>(f.outbox.sent.rbegin()[1].second));
}

BOOST_AUTO_TEST_CASE(each_stop_is_told_once_and_in_order) {
  Fixture f;
  f.route(1);
  f.run();
  std::vector<Stop> stops;
  for (const auto& emission : f.emissions()) {
    for (const auto& stop : emission.stops) stops.push_back(stop.stop);
  }
  BOOST_TEST((stops == std::vector<Stop>{Stop::kRouted, Stop::kReserved, Stop::kPrefilled,
                                         Stop::kMoved, Stop::kJoined, Stop::kFinished}));
}

BOOST_AUTO_TEST_CASE(a_repeated_routed_is_ignored_and_a_higher_attempt_replaces_the_lower) {
  Fixture f;
  f.route(1, 1, 4, 1);
  f.route(1, 1, 4, 1);
  f.pump();
  f.route(1, 1, 4, 2);
  f.run();
  BOOST_TEST(f.ends() == 1U);
  BOOST_TEST(f.emissions().back().attempt == 2U);
  BOOST_TEST(f.used() == 0U);
}

BOOST_AUTO_TEST_CASE(a_cancel_frees_the_blocks_within_one_step_whatever_the_state) {
  for (int when = 0; when < 4; ++when) {
    Fixture f;
    f.route(1, 2, 50);
    if (when >= 1) f.pump();
    for (int i = 1; i < when; ++i) f.step();
    f.decode->on_cancelled({RequestId(1), {}});
    const size_t emitted = f.emissions().size();
    f.run();
    BOOST_TEST(f.emissions().size() == emitted);
    BOOST_TEST(f.used() == 0U);
    BOOST_TEST(f.finished().size() == 1U);
    BOOST_TEST(f.decode->idle());
  }
}

BOOST_AUTO_TEST_CASE(one_choice_can_be_cancelled_while_the_other_goes_on) {
  Fixture f;
  f.route(1, 2);
  f.pump();
  f.decode->on_cancelled({RequestId(1), {SequenceId(1010)}});
  f.run();
  BOOST_TEST(f.ends() == 1U);
  BOOST_TEST(f.emissions().back().sequence == SequenceId(1011));
  BOOST_TEST(f.finished().size() == 1U);
}

BOOST_AUTO_TEST_CASE(what_can_never_fit_fails_at_once_and_says_why) {
  Fixture f(2);
  f.route(1, 1, 1000);
  f.run();
  BOOST_REQUIRE(f.ends() == 1U);
  const wire::End end = *f.emissions().back().end;
  BOOST_TEST(!end.error.ok());
  BOOST_TEST(!end.error.message().empty());
  BOOST_TEST(f.finished().size() == 1U);
  BOOST_TEST(f.decode->idle());
}

BOOST_AUTO_TEST_CASE(a_failed_device_ends_all_requests_and_stalls_the_worker) {
  Fixture f;
  f.route(1);
  f.route(2);
  f.pump();
  f.decode->on_step_done(Status{StatusCode::kInternal, "broken"});
  f.pump();
  BOOST_TEST(f.ends() == 2U);
  BOOST_TEST(f.finished().size() == 2U);
  BOOST_TEST(f.used() == 0U);
  f.decode->on_tick();
  BOOST_TEST(f.outbox.take<wire::Heartbeat>("router").back().stalled);
  f.route(3);
  BOOST_TEST(f.ends() == 3U);
}

BOOST_AUTO_TEST_CASE(a_step_far_over_its_prediction_shows_as_stalled) {
  Fixture f;
  f.route(1);
  f.pump();
  f.decode->on_tick();
  BOOST_TEST(!f.outbox.take<wire::Heartbeat>("router").back().stalled);
  for (auto gone = 0 * limits::kStallFloor; gone <= limits::kStallFloor;
       gone += limits::kHeartbeatInterval) {
    f.clock.advance(limits::kHeartbeatInterval);
    f.decode->on_tick();
  }
  BOOST_TEST(f.outbox.take<wire::Heartbeat>("router").back().stalled);
  f.run();
  f.decode->on_tick();
  BOOST_TEST(!f.outbox.take<wire::Heartbeat>("router").back().stalled);
}

// Of two sequences only one decodes in a step; the other one's blocks must not wait for an event of
// its own.
BOOST_AUTO_TEST_CASE(a_pause_of_the_process_is_no_stall_of_its_device) {
  Fixture f;
  f.route(1);
  f.pump();
  f.clock.advance(std::chrono::hours(1));
  f.decode->on_tick();
  BOOST_TEST(!f.outbox.take<wire::Heartbeat>("router").back().stalled);
}

BOOST_AUTO_TEST_CASE(requests_of_a_gateway_that_is_gone_end_with_their_blocks) {
  Fixture f;
  f.route(1, 1, 100);
  f.route(2, 1, 100);
  f.pump();
  f.outbox.unreachable.insert("g");
  f.step();
  while (!f.plans.empty()) f.step();
  BOOST_TEST(f.kv.empty());
  BOOST_TEST(f.decode->idle());
  BOOST_TEST(f.used() == 0U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
