#include "actors/health_monitor/health_monitor_actor.h"

#include <boost/test/unit_test.hpp>

#include <caf/actor_system_config.hpp>

#include <condition_variable>
#include <mutex>

#include "actors/wire/codec.h"
#include "actors/wire/transport_outbox.h"
#include "base/os/system_clock.h"
#include "transport/loopback/loopback_transport.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kDeadline{20};

// Answers like a router with one worker, at the endpoint that it is asked for.
class FakeRouter final : public MessageReceiver {
 public:
  explicit FakeRouter(Transport& transport) : transport_(transport) {}
  void on_message(MessageWords words) override {
    const auto message = wire::decode(words);
    const auto& observe = std::get<wire::Observe>(message.value());
    wire::WorkerStatus worker;
    worker.endpoint = "w/worker";
    worker.accepting = true;
    worker.state = "ready";
    [[maybe_unused]] const Status sent =
        transport_.send(observe.endpoint, TrafficClass::kControl,
                        wire::encode(wire::Health{true, "", {worker}, 1}));
  }

 private:
  Transport& transport_;
};

class WaitingSink final : public MonitorViewSink {
 public:
  void on_view(MonitorView view) override {
    const std::lock_guard lock(mutex_);
    view_ = std::move(view);
    changed_.notify_all();
  }
  // Waits until a view of a healthy cluster has come.
  bool wait_healthy() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kDeadline, [this] { return view_.healthy; });
  }
  MonitorView view() {
    const std::lock_guard lock(mutex_);
    return view_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  MonitorView view_;
};

BOOST_AUTO_TEST_CASE(the_monitor_asks_and_learns_over_a_transport) {
  const SystemClock clock;
  LoopbackTransport transport;
  wire::TransportOutbox outbox(transport);
  FakeRouter router(transport);
  BOOST_TEST(transport.bind("router", router).ok());
  WaitingSink sink;
  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  config.set("scheduler.max-threads", 1);
  caf::actor_system system(config);
  {
    const caf::actor monitor = spawn_health_monitor(
        system, clock, outbox, transport, sink, {{"nowhere", "monitor"}, {"router", "monitor1"}});
    RouterAnswerInbox first(monitor, 0), second(monitor, 1);
    BOOST_TEST(transport.bind("monitor", first).ok());
    BOOST_TEST(transport.bind("monitor1", second).ok());
    // Dropped: neither a message, nor one for a monitor.
    BOOST_TEST(transport.send("monitor", TrafficClass::kControl, MessageWords{1, 2, 3}).ok());
    BOOST_TEST(
        transport.send("monitor", TrafficClass::kControl, wire::encode(wire::Finished{})).ok());
    BOOST_TEST(sink.wait_healthy());
    const MonitorView view = sink.view();
    BOOST_TEST((view.routers[0].state == NodeState::kUnheard));
    BOOST_TEST((view.routers[1].state == NodeState::kReady));
    BOOST_TEST(view.workers.size() == 1U);
    transport.unbind("monitor");
    transport.unbind("monitor1");
    caf::anon_send_exit(monitor, caf::exit_reason::user_shutdown);
  }
  system.await_all_actors_done();
  transport.unbind("router");
}

}  // namespace
}  // namespace troupe
