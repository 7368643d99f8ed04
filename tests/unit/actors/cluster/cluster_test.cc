// The actors of one worker, the router and the gateway over the loopback transport, on one thread
// and in virtual time: the shells dispatch, tick, and die together.

#include <boost/test/unit_test.hpp>

#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <caf/scoped_actor.hpp>

#include "actors/decode/decode_actor.h"
#include "actors/device/device_actor.h"
#include "actors/gateway/gateway_core.h"
#include "actors/kv_cache_manager/kv_cache_manager_actor.h"
#include "actors/router/router_actor.h"
#include "actors/wire/codec.h"
#include "actors/wire/inbox_actor.h"
#include "actors/wire/transport_outbox.h"
#include "engine/kv/block_hash.h"
#include "policies/routing/least_loaded.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe {
namespace {

// The time of the actors' test scheduler, for the cores.
class CafClock final : public Clock {
 public:
  explicit CafClock(caf::scheduler::test_coordinator& scheduler) : scheduler_(scheduler) {}
  [[nodiscard]] TimePoint now() const override {
    return std::chrono::time_point_cast<Duration>(scheduler_.clock().now());
  }
  [[nodiscard]] int64_t unix_seconds() const override { return 0; }

 private:
  caf::scheduler::test_coordinator& scheduler_;
};

// A device whose next token is its position: 1000 + index in the sequence.
caf::behavior counting_device(caf::event_based_actor* self) {
  return {[self](const DeviceStep& step) {
    StepResult result{step.plan->number, {}, {}, {}};
    for (const StepSlice& slice : step.plan->slices) {
      SliceResult& out = result.slices.emplace_back();
      out.sequence = slice.sequence;
      if (!slice.sample) continue;
      const size_t position = slice.position + slice.tokens.size();
      out.sampled = {{.token = static_cast<TokenId>(1000 + position)}};
    }
    self->send(caf::actor_cast<caf::actor>(self->current_sender()),
               DeviceStepDone{std::make_shared<const Result<StepResult>>(std::move(result))});
  }};
}

// The gateway's event loop of this test: messages wait until the world hands them over.
class GatewayQueue final : public MessageReceiver {
 public:
  void on_message(MessageWords words) override { queue_.push_back(std::move(words)); }
  bool deliver(GatewayCore& gateway) {
    std::vector<MessageWords> batch;
    batch.swap(queue_);
    for (const MessageWords& words : batch) {
      auto message = wire::decode(words);
      BOOST_REQUIRE(message.ok());
      if (const auto* m = std::get_if<wire::Emitted>(&message.value())) gateway.on_emitted(*m);
      if (const auto* m = std::get_if<wire::Rejected>(&message.value())) gateway.on_rejected(*m);
      if (const auto* m = std::get_if<wire::Health>(&message.value())) gateway.on_health(*m);
    }
    return !batch.empty();
  }

 private:
  std::vector<MessageWords> queue_;
};

struct Listener final : GenerationListener {
  void on_prompt_scores(std::span<const SampledToken>) override {}
  void on_tokens(uint32_t, std::span<const SampledToken> batch) override {
    for (const SampledToken& token : batch) tokens.push_back(token.token);
  }
  void on_finished(uint32_t, FinishReason, TokenId, const GenerationUsage&) override { ++ends; }
  void on_failed(const Status& status) override {
    ++ends;
    failure = status;
  }
  std::vector<TokenId> tokens;
  int ends = 0;
  Status failure;
};

struct World {
  static caf::actor_system_config& prepare(caf::actor_system_config& config) {
    config.set("scheduler.policy", caf::atom("testing"));
    return config;
  }

  World() {
    BOOST_REQUIRE(transport.bind("gateway", queue).ok());
    router = spawn_router(*system, clock, outbox, policy,
                          {8, "router", {"gateway"}});
    router_inbox = std::make_unique<wire::ActorInbox>(router);
    BOOST_REQUIRE(transport.bind("router", *router_inbox).ok());
    device = system->spawn(counting_device);
    DecodeOptions options;
    options.scheduler.blocks_total = 16;
    options.scheduler.context_tokens = 128;
    decode = spawn_decode(*system, clock, outbox, metrics, options, {}, {}, device,
                          spawn_kv_cache_manager(*system, manager, metrics))
                 .actor;
    decode_inbox = std::make_unique<wire::ActorInbox>(decode);
    BOOST_REQUIRE(transport.bind("worker", *decode_inbox).ok());
    settle();
  }
  ~World() {
    for (const char* endpoint : {"gateway", "router", "worker"}) transport.unbind(endpoint);
    caf::anon_send_exit(router, caf::exit_reason::kill);
    caf::anon_send_exit(decode, caf::exit_reason::kill);
    caf::anon_send_exit(device, caf::exit_reason::kill);
    scheduler.run();
    scheduler.clock().cancel_all();
    router_inbox.reset();
    decode_inbox.reset();
    router = decode = device = nullptr;
  }

  void settle() {
    do scheduler.run();
    while (queue.deliver(gateway));
    gateway.check_invariants();
  }
  void pass(std::chrono::milliseconds time) {
    for (auto gone = 0 * limits::kHeartbeatInterval; gone < time;
         gone += limits::kHeartbeatInterval) {
      scheduler.advance_time(limits::kHeartbeatInterval);
      settle();
      gateway.on_tick();
    }
  }
  RequestId submit(Listener& listener, uint32_t max_tokens) {
    GenerationRequest request;
    request.prompt = {1, 2, 3};
    request.choices.resize(1);
    request.choices[0].max_tokens = max_tokens;
    const auto id = gateway.submit(std::move(request), listener);
    BOOST_REQUIRE(id.ok());
    return id.value();
  }

  caf::actor_system_config config;
  std::optional<caf::actor_system> system{std::in_place, prepare(config)};
  caf::scheduler::test_coordinator& scheduler =
      dynamic_cast<caf::scheduler::test_coordinator&>(system->scheduler());
  CafClock clock{scheduler};
  LoopbackTransport transport;
  wire::TransportOutbox outbox{transport};
  LeastLoaded policy;
  ServingMetrics metrics{"m"};
  Xxh3BlockHasher hasher{1};
  KvCacheManagerCore manager{{16}, hasher};
  GatewayQueue queue;
  GatewayCore gateway{clock, outbox, metrics, {}};
  caf::actor router, decode, device;
  std::unique_ptr<wire::ActorInbox> router_inbox, decode_inbox;
};

BOOST_AUTO_TEST_SUITE(cluster)

BOOST_AUTO_TEST_CASE(is_healthy_as_soon_as_the_worker_was_heard) {
  World world;
  BOOST_TEST(world.gateway.health().ok());
}

BOOST_AUTO_TEST_CASE(a_request_travels_all_stops_and_leaves_no_block_behind) {
  World world;
  Listener listener;
  world.submit(listener, 4);
  world.settle();
  BOOST_TEST((listener.tokens == std::vector<TokenId>{1003, 1004, 1005, 1006}));
  BOOST_TEST(listener.ends == 1);
  BOOST_TEST(world.metrics.kv_blocks_held.Value() == 0.0);
  BOOST_TEST(world.metrics.requests_running.Value() == 0.0);
}

BOOST_AUTO_TEST_CASE(a_cancelled_request_leaves_no_block_behind) {
  World world;
  Listener listener;
  const RequestId id = world.submit(listener, 100);
  for (int i = 0; i < 12; ++i) world.scheduler.run_once();
  world.gateway.cancel(id);
  world.settle();
  BOOST_TEST(listener.ends == 0);
  BOOST_TEST(world.metrics.kv_blocks_held.Value() == 0.0);
}

// The device's death takes its worker along; the router misses the heartbeats, and the request ends
// with an error that says to retry, within the timeout and without any new traffic.
BOOST_AUTO_TEST_CASE(a_dead_device_ends_its_requests_within_the_heartbeat_timeout) {
  World world;
  Listener listener;
  world.submit(listener, 100);
  for (int i = 0; i < 12; ++i) world.scheduler.run_once();
  caf::anon_send_exit(world.device, caf::exit_reason::kill);
  world.settle();
  world.pass(limits::kHeartbeatTimeout + 2 * limits::kHeartbeatInterval);
  BOOST_TEST(listener.ends == 1);
  BOOST_TEST((listener.failure.code() == StatusCode::kUnavailable));
  BOOST_TEST(!world.gateway.health().ok());
}

BOOST_AUTO_TEST_CASE(a_dead_router_ends_the_requests_at_the_gateway) {
  World world;
  Listener listener;
  world.submit(listener, 100);
  for (int i = 0; i < 12; ++i) world.scheduler.run_once();
  caf::anon_send_exit(world.router, caf::exit_reason::kill);
  world.pass(limits::kHeartbeatTimeout + 2 * limits::kHeartbeatInterval);
  BOOST_TEST(listener.ends == 1);
  BOOST_TEST(!world.gateway.health().ok());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
