// Requests that wait for their grammar.

#include <boost/test/unit_test.hpp>

#include <deque>

#include "actors/decode/decode_core.h"
#include "tests/unit/actors/fake_outbox.h"

namespace troupe {
namespace {

// Allows everything and never ends; counts what it is told.
struct FakeMatcher final : GrammarMatcher {
  Status fill_mask(std::span<uint32_t> mask) override {
    std::fill(mask.begin(), mask.end(), ~uint32_t{0});
    return ok_status();
  }
  Status accept(TokenId) override {
    ++count;
    return ok_status();
  }
  [[nodiscard]] bool ended() const override { return false; }
  [[nodiscard]] uint32_t accepted() const override { return count; }
  uint32_t count = 0;
};
struct FakeGrammar final : CompiledGrammar {
  [[nodiscard]] Result<std::unique_ptr<GrammarMatcher>> start(
      std::span<const TokenId>) const override {
    return std::unique_ptr<GrammarMatcher>(std::make_unique<FakeMatcher>());
  }
};

// A worker that answers nothing by itself, neither its blocks nor its grammars.
struct Fixture final : WorkerPorts, GrammarPort {
  Fixture() {
    DecodeOptions options;
    options.scheduler.blocks_total = 16;
    options.scheduler.context_tokens = 2048;
    decode = std::make_unique<DecodeCore>(clock, outbox, *this, nullptr, metrics, options, this);
  }
  void ask_kv(std::vector<KvRequest> requests) override {
    for (KvRequest& request : requests) kv.push_back(std::move(request));
  }
  void submit(StepPlan plan) override { plans.push_back(std::move(plan)); }
  Status compile(uint64_t ticket, GrammarSpec spec) override {
    if (!refusal.ok()) return refusal;
    waiting.emplace_back(ticket, std::move(spec));
    return ok_status();
  }
  void give_up(uint64_t ticket) override { given_up.push_back(ticket); }
  void on_tick() override { ++ticks; }

  void route(uint64_t id, uint32_t choices, GrammarSpec grammar, uint32_t attempt = 1) {
    wire::Routed routed;
    routed.attempt = attempt;
    routed.router = "router";
    routed.request.id = RequestId(id);
    routed.request.gateway = "n/g";
    routed.request.prompt = {5, 6, 7};
    for (uint32_t i = 0; i < choices; ++i) {
      SamplingParams params;
      params.max_tokens = 4;
      params.grammar = grammar;
      routed.request.sequences.push_back({SequenceId(id * 10 + i), params});
    }
    decode->on_routed(routed);
    decode->check_invariants();
  }
  [[nodiscard]] std::vector<wire::Emission> emissions() const {
    std::vector<wire::Emission> out;
    for (const auto& message : outbox.take<wire::Emitted>("n/g"))
      out.insert(out.end(), message.emissions.begin(), message.emissions.end());
    return out;
  }
  [[nodiscard]] size_t reserves() const {
    return static_cast<size_t>(std::count_if(kv.begin(), kv.end(), [](const KvRequest& request) {
      return std::holds_alternative<KvReserve>(request);
    }));
  }
  [[nodiscard]] uint32_t reported_waiting() {
    decode->on_tick();
    return outbox.take<wire::Heartbeat>("router").back().load.waiting;
  }

  ManualClock clock;
  FakeOutbox outbox;
  ServingMetrics metrics{"m"};
  Status refusal;
  std::vector<std::pair<uint64_t, GrammarSpec>> waiting;
  std::vector<uint64_t> given_up;
  std::vector<KvRequest> kv;
  std::deque<StepPlan> plans;
  int ticks = 0;
  std::unique_ptr<DecodeCore> decode;
};

const GrammarSpec kRegex{GrammarKind::kRegex, "a+"};
const std::shared_ptr<const CompiledGrammar> kCompiled = std::make_shared<FakeGrammar>();

BOOST_AUTO_TEST_SUITE(decode_grammar)

BOOST_AUTO_TEST_CASE(a_request_waits_for_its_grammar_and_others_pass_it) {
  Fixture f;
  f.route(1, 2, kRegex);
  BOOST_TEST(f.reserves() == 0U);
  BOOST_TEST(f.waiting.size() == 1U);  // once for all its sequences
  BOOST_TEST((f.waiting[0].second == kRegex));
  BOOST_TEST(f.reported_waiting() == 2U);
  BOOST_TEST(f.ticks == 1);
  BOOST_TEST(!f.decode->idle());
  f.route(2, 1, {});
  BOOST_TEST(f.reserves() == 1U);
  f.decode->on_grammar_compiled(f.waiting[0].first, kCompiled);
  BOOST_TEST(f.reserves() == 3U);
  BOOST_TEST(f.emissions().empty());
  f.decode->on_grammar_compiled(f.waiting[0].first, kCompiled);  // repeated
  BOOST_TEST(f.reserves() == 3U);
  f.decode->check_invariants();
}

BOOST_AUTO_TEST_CASE(a_grammar_that_cannot_be_compiled_ends_the_request_once) {
  Fixture f;
  f.route(1, 2, kRegex);
  f.decode->on_grammar_compiled(f.waiting[0].first, invalid_argument("too odd", "x"));
  const auto emissions = f.emissions();
  BOOST_REQUIRE(emissions.size() == 1U);
  BOOST_TEST((emissions[0].end->error == invalid_argument("too odd", "x")));
  BOOST_TEST(f.outbox.take<wire::Finished>("router").size() == 1U);
  BOOST_TEST(f.decode->idle());
  BOOST_TEST(f.reserves() == 0U);
}

BOOST_AUTO_TEST_CASE(a_full_queue_refuses_the_request_at_once) {
  Fixture f;
  f.refusal = {StatusCode::kResourceExhausted, "full"};
  f.route(1, 1, kRegex);
  BOOST_REQUIRE(f.emissions().size() == 1U);
  BOOST_TEST((f.emissions()[0].end->error == f.refusal));
  BOOST_TEST(f.outbox.take<wire::Finished>("router").size() == 1U);
  BOOST_TEST(f.decode->idle());
}

BOOST_AUTO_TEST_CASE(a_request_that_is_cancelled_while_it_waits_is_given_up) {
  Fixture f;
  f.route(1, 2, kRegex);
  f.decode->on_cancelled({RequestId(1), {SequenceId(10)}});
  BOOST_TEST(f.given_up.empty());
  BOOST_TEST(f.reported_waiting() == 1U);
  f.decode->on_cancelled({RequestId(1), {}});
  BOOST_TEST(f.given_up.size() == 1U);
  BOOST_TEST(f.outbox.take<wire::Finished>("router").size() == 1U);
  BOOST_TEST(f.decode->idle());
  f.decode->on_grammar_compiled(f.waiting[0].first, kCompiled);  // too late
  BOOST_TEST(f.decode->idle());
  BOOST_TEST(f.reserves() == 0U);
}

BOOST_AUTO_TEST_CASE(a_sequence_that_is_cancelled_while_it_waits_is_not_started) {
  Fixture f;
  f.route(1, 3, kRegex);
  f.decode->on_cancelled({RequestId(1), {SequenceId(11)}});
  f.decode->on_grammar_compiled(f.waiting[0].first, kCompiled);
  BOOST_TEST(f.reserves() == 2U);
  f.decode->check_invariants();
}

BOOST_AUTO_TEST_CASE(a_later_attempt_replaces_one_that_waits) {
  Fixture f;
  f.route(1, 1, kRegex);
  f.route(1, 1, kRegex, 2);
  BOOST_TEST(f.given_up.size() == 1U);
  BOOST_REQUIRE(f.waiting.size() == 2U);
  f.decode->on_grammar_compiled(f.waiting[0].first, kCompiled);
  BOOST_TEST(f.reserves() == 0U);
  f.decode->on_grammar_compiled(f.waiting[1].first, kCompiled);
  BOOST_TEST(f.reserves() == 1U);
}

BOOST_AUTO_TEST_CASE(a_device_that_fails_ends_the_requests_that_wait) {
  Fixture f;
  f.route(1, 1, kRegex);
  f.decode->on_step_done(Status{StatusCode::kInternal, "broken"});
  BOOST_REQUIRE(f.emissions().size() == 1U);
  BOOST_TEST((f.emissions()[0].end->error.code() == StatusCode::kUnavailable));
  BOOST_TEST(f.decode->idle());
  f.route(2, 1, kRegex);
  BOOST_TEST(f.emissions().size() == 2U);
  BOOST_TEST(f.decode->idle());
}

BOOST_AUTO_TEST_CASE(a_gateway_that_is_lost_takes_its_waiting_requests_along) {
  Fixture f;
  f.route(1, 1, kRegex);
  f.decode->on_peer_lost("n");
  BOOST_TEST(f.given_up.size() == 1U);
  BOOST_TEST(f.decode->idle());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
