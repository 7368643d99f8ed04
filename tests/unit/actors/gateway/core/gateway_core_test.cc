#include "actors/gateway/gateway_core.h"

#include <boost/test/unit_test.hpp>

#include "base/limits.h"
#include "tests/unit/actors/fake_outbox.h"

namespace troupe {
namespace {

// Writes down what it hears, and can be told to cancel from inside a call.
struct Listener final : GenerationListener {
  void on_prompt_scores(std::span<const SampledToken> scores) override {
    score_count += scores.size();
  }
  void on_tokens(uint32_t choice, std::span<const SampledToken> tokens) override {
    for (const SampledToken& token : tokens) heard[choice].push_back(token.token);
    if (during_tokens) during_tokens();
  }
  void on_finished(uint32_t choice, FinishReason, TokenId, const GenerationUsage& u) override {
    ++finished[choice];
    usage = u;
  }
  void on_failed(const Status& status) override { failures.push_back(status); }

  std::map<uint32_t, std::vector<TokenId>> heard;
  std::map<uint32_t, int> finished;
  std::vector<Status> failures;
  size_t score_count = 0;
  GenerationUsage usage;
  std::function<void()> during_tokens;
};

struct Fixture {
  Fixture() { gateway.on_health({true, ""}); }

  RequestId submit(uint32_t choices, Listener& listener) {
    GenerationRequest request;
    request.label = "test";
    request.prompt = {1, 2, 3};
    request.choices.resize(choices);
    const auto id = gateway.submit(std::move(request), listener);
    BOOST_REQUIRE(id.ok());
    gateway.check_invariants();
    return id.value();
  }
  SequenceId sequence(uint32_t choice) const {
    return outbox.take<wire::Accepted>("router").back().request.sequences[choice].id;
  }
  void emit(RequestId id, SequenceId sequence, uint32_t first, std::vector<TokenId> tokens,
            std::optional<wire::End> end = std::nullopt, uint32_t attempt = 1) {
    wire::Emission emission{.request = id,
                            .sequence = sequence,
                            .attempt = attempt,
                            .first_index = first,
                            .cached_tokens = 2,
                            .end = std::move(end)};
    for (const TokenId token : tokens) emission.tokens.push_back({token, 0.0F, {}});
    gateway.on_emitted({WorkerId(0), 1, {}, {}, {}, {emission}});
    gateway.check_invariants();
  }
  static wire::End end(FinishReason reason = FinishReason::kStop) {
    wire::End out;
    out.reason = reason;
    out.prompt_tokens = 3;
    out.cached_tokens = 1;
    return out;
  }
  // The time passes, and the gateway looks at the clock as often as it should.
  void pass(std::chrono::milliseconds time) {
    for (auto gone = 0 * time; gone < time; gone += limits::kHeartbeatInterval) {
      clock.advance(limits::kHeartbeatInterval);
      gateway.on_tick();
    }
  }
  size_t cancels() const { return outbox.take<wire::Cancelled>("router").size(); }

  ManualClock clock;
  FakeOutbox outbox;
  ServingMetrics metrics{"m"};
  GatewayCore gateway{clock, outbox, metrics, {}};
  Listener listener;
};

BOOST_AUTO_TEST_SUITE(gateway_core)

BOOST_AUTO_TEST_CASE(tokens_reach_the_listener_in_order_and_the_request_ends_once) {
  Fixture f;
  const RequestId id = f.submit(1, f.listener);
  const SequenceId s = f.sequence(0);
  f.emit(id, s, 0, {10});
  f.emit(id, s, 1, {11, 12}, Fixture::end());
  BOOST_TEST((f.listener.heard[0] == std::vector<TokenId>{10, 11, 12}));
  BOOST_TEST(f.listener.finished[0] == 1);
  BOOST_TEST(f.listener.usage.cached_tokens == 1U);
  BOOST_TEST(f.gateway.requests_in_flight() == 0U);
  f.emit(id, s, 3, {13}, Fixture::end());  // late
  f.gateway.on_rejected({id, 1, {StatusCode::kUnavailable, "late"}, {}});
  f.gateway.cancel(id);
  BOOST_TEST(f.listener.heard[0].size() == 3U);
  BOOST_TEST(f.listener.finished[0] == 1);
  BOOST_TEST(f.listener.failures.empty());
}

BOOST_AUTO_TEST_CASE(a_repeated_emission_is_harmless_and_a_gap_ends_the_request_with_an_error) {
  Fixture f;
  const RequestId id = f.submit(1, f.listener);
  const SequenceId s = f.sequence(0);
  f.emit(id, s, 0, {10, 11});
  f.emit(id, s, 0, {10, 11});
  BOOST_TEST(f.listener.heard[0].size() == 2U);
  f.emit(id, s, 3, {13});
  BOOST_REQUIRE(f.listener.failures.size() == 1U);
  BOOST_TEST((f.listener.failures[0].code() == StatusCode::kInternal));
  BOOST_TEST(f.cancels() == 1U);
  BOOST_TEST(f.gateway.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(an_emission_of_another_attempt_is_dropped) {
  Fixture f;
  const RequestId id = f.submit(1, f.listener);
  f.emit(id, f.sequence(0), 0, {10}, std::nullopt, 2);
  BOOST_TEST(f.listener.heard[0].empty());
}

BOOST_AUTO_TEST_CASE(each_of_n_choices_ends_once_and_the_request_with_the_last) {
  Fixture f;
  const RequestId id = f.submit(2, f.listener);
  f.emit(id, f.sequence(1), 0, {20}, Fixture::end());
  BOOST_TEST(f.gateway.requests_in_flight() == 1U);
  f.emit(id, f.sequence(0), 0, {10}, Fixture::end(FinishReason::kLength));
  BOOST_TEST(f.gateway.requests_in_flight() == 0U);
  BOOST_TEST(f.listener.finished[0] == 1);
  BOOST_TEST(f.listener.finished[1] == 1);
}

BOOST_AUTO_TEST_CASE(a_choice_cancelled_from_inside_its_tokens_hears_no_more) {
  Fixture f;
  const RequestId id = f.submit(2, f.listener);
  GenerationUsage usage;
  f.listener.during_tokens = [&] { usage = f.gateway.cancel_choice(id, 0); };
  f.emit(id, f.sequence(0), 0, {10}, Fixture::end());
  BOOST_TEST(f.listener.finished[0] == 0);
  BOOST_TEST(usage.prompt_tokens == 3U);
  BOOST_TEST(usage.cached_tokens == 2U);
  BOOST_TEST(f.cancels() == 1U);
  f.listener.during_tokens = nullptr;
  f.emit(id, f.sequence(1), 0, {20}, Fixture::end());
  BOOST_TEST(f.listener.finished[1] == 1);
  BOOST_TEST(f.gateway.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(a_request_cancelled_from_inside_its_tokens_hears_no_more) {
  Fixture f;
  const RequestId id = f.submit(2, f.listener);
  f.listener.during_tokens = [&] { f.gateway.cancel(id); };
  f.emit(id, f.sequence(0), 0, {10}, Fixture::end());
  f.emit(id, f.sequence(1), 0, {20}, Fixture::end());
  BOOST_TEST(f.listener.finished.empty());
  BOOST_TEST(f.listener.heard[1].empty());
  BOOST_TEST(f.gateway.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(a_sequence_that_fails_ends_its_whole_request_with_one_error) {
  Fixture f;
  const RequestId id = f.submit(2, f.listener);
  wire::End end;
  end.error = {StatusCode::kContextLength, "too long"};
  f.emit(id, f.sequence(1), 0, {}, end);
  BOOST_TEST(f.listener.failures.size() == 1U);
  BOOST_TEST(f.cancels() == 1U);
  BOOST_TEST(f.gateway.requests_in_flight() == 0U);
}

BOOST_AUTO_TEST_CASE(a_silent_router_ends_every_request_and_the_gateway_says_so) {
  Fixture f;
  [[maybe_unused]] const RequestId id = f.submit(1, f.listener);
  f.pass(limits::kHeartbeatTimeout);
  BOOST_TEST(f.listener.failures.empty());
  f.pass(limits::kHeartbeatInterval);
  BOOST_TEST(f.listener.failures.size() == 1U);
  BOOST_TEST(!f.gateway.health().ok());
  Listener other;
  GenerationRequest request;
  request.prompt = {1};
  request.choices.resize(1);
  BOOST_TEST(!f.gateway.submit(std::move(request), other).ok());
  f.gateway.on_health({true, ""});
  BOOST_TEST(f.gateway.health().ok());
}

BOOST_AUTO_TEST_CASE(a_pause_of_the_gateway_itself_is_no_silence_of_the_router) {
  Fixture f;
  f.submit(1, f.listener);
  f.clock.advance(std::chrono::hours(1));  // the process was stopped
  f.gateway.on_tick();
  BOOST_TEST(f.listener.failures.empty());
  BOOST_TEST(f.gateway.health().ok());
}

BOOST_AUTO_TEST_CASE(prompt_scores_come_once_and_from_the_first_choice) {
  Fixture f;
  const RequestId id = f.submit(2, f.listener);
  for (const uint32_t choice : {0U, 0U, 1U}) {
    wire::Emission emission{.request = id,
                            .sequence = f.sequence(choice),
                            .attempt = 1,
                            .prompt_scores = {{5, -1.0F, {}}, {6, -2.0F, {}}}};
    f.gateway.on_emitted({WorkerId(0), 1, {}, {}, {}, {emission}});
  }
  BOOST_TEST(f.listener.score_count == 2U);
}

// A stop string ends the answer at the gateway; the worker never says how it ended.
BOOST_AUTO_TEST_CASE(an_answer_ended_by_a_stop_string_counts_like_any_other) {
  Fixture f;
  const RequestId id = f.submit(1, f.listener);
  f.listener.during_tokens = [&] { f.gateway.cancel_choice(id, 0); };
  f.emit(id, f.sequence(0), 0, {10, 11});
  BOOST_TEST(f.metrics.prompt_tokens.Value() == 3.0);
  BOOST_TEST(f.metrics.generation_tokens.Value() == 2.0);
  BOOST_TEST(f.metrics.finished_stop.Value() == 1.0);
  BOOST_TEST(f.metrics.finished_abort.Value() == 0.0);
}

BOOST_AUTO_TEST_CASE(metrics_count_what_happened) {
  Fixture f;
  const RequestId id = f.submit(1, f.listener);
  f.emit(id, f.sequence(0), 0, {10, 11}, Fixture::end());
  f.gateway.cancel(f.submit(3, f.listener));
  BOOST_TEST(f.metrics.generation_tokens.Value() == 2.0);
  BOOST_TEST(f.metrics.prompt_tokens.Value() == 3.0);
  BOOST_TEST(f.metrics.finished_stop.Value() == 1.0);
  BOOST_TEST(f.metrics.finished_abort.Value() == 3.0);
  BOOST_TEST(f.metrics.serialize().find("troupe_stop_seconds_count{engine=\"0\",model_name=\"m\","
                                        "stop=\"finished\"} 1") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(time_on_the_network_and_on_devices_is_measured_by_the_gateways_clock) {
  ManualClock clock;
  FakeOutbox outbox;
  ServingMetrics metrics{"m"};
  std::optional<Duration> offset;
  GatewayOptions options;
  options.clock_offset = [&offset](std::string_view node) {
    return node == "10.0.0.7:7000" ? offset : std::nullopt;
  };
  GatewayCore gateway(clock, outbox, metrics, options);
  wire::WorkerStatus worker;
  worker.worker = WorkerId(3);
  worker.endpoint = "10.0.0.7:7000/worker";
  gateway.on_health({true, "", {worker}, 0});
  const auto serve_one = [&](WorkerId by, TimePoint sent) {
    Listener listener;
    GenerationRequest request;
    request.prompt = {1, 2, 3};
    request.choices.resize(1);
    const RequestId id = gateway.submit(std::move(request), listener).value();
    wire::Emission emission;
    emission.request = id;
    emission.sequence = outbox.take<wire::Accepted>("router").back().request.sequences[0].id;
    emission.attempt = 1;
    emission.tokens = {{7, 0.0F, {}}};
    emission.compute = std::chrono::milliseconds(30);
    emission.end = Fixture::end();
    gateway.on_emitted({by, 1, {}, {}, sent, {emission}});
    BOOST_TEST(listener.finished[0] == 1);
  };
  const auto counts = [&metrics](const prometheus::Histogram& histogram) {
    const auto collected = histogram.Collect().histogram;
    return std::pair(collected.sample_count, collected.sample_sum);
  };
  clock.advance(std::chrono::hours(5));
  serve_one(WorkerId(3), {});  // the worker's clock is not known yet
  serve_one(WorkerId(4), {});  // nor is this worker
  BOOST_TEST(counts(metrics.network_seconds).first == 0U);
  // The worker's clock is an hour ahead; its message took 2 ms.
  offset = std::chrono::hours(1);
  serve_one(WorkerId(3), clock.now() + *offset - std::chrono::milliseconds(2));
  BOOST_TEST(counts(metrics.network_seconds).first == 1U);
  BOOST_TEST(counts(metrics.network_seconds).second == 0.002, boost::test_tools::tolerance(1e-9));
  // Within the uncertainty of the offset it may seem to have arrived too early.
  serve_one(WorkerId(3), clock.now() + *offset + std::chrono::milliseconds(1));
  BOOST_TEST(counts(metrics.network_seconds).second == 0.002, boost::test_tools::tolerance(1e-9));
  BOOST_TEST(counts(metrics.compute_seconds).first == 4U);
  BOOST_TEST(counts(metrics.compute_seconds).second == 0.12, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
