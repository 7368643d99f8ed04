#include "apps/node/node.h"

#include <boost/test/unit_test.hpp>
#include <caf/event_based_actor.hpp>
#include <future>

#include "apps/node/peer_clocks.h"
#include "transport/loopback/loopback_transport.h"

using namespace troupe;

BOOST_AUTO_TEST_SUITE(node)

namespace {

constexpr std::chrono::seconds kPatience{10};

// Passes on to a loopback transport; peers are what the test says.
class FakePeers final : public Transport {
 public:
  Status bind(std::string_view name, MessageReceiver& receiver) override {
    return inner.bind(name, receiver);
  }
  void unbind(std::string_view name) override { inner.unbind(name); }
  std::string address_of(std::string_view name) const override {
    return "10.0.0.1:7/" + std::string(name);
  }
  Status send(std::string_view address, TrafficClass traffic, MessageWords words) override {
    return inner.send(address, traffic, std::move(words));
  }
  Status register_memory(std::span<std::byte> memory) override {
    return inner.register_memory(memory);
  }
  void unregister_memory(std::span<std::byte> memory) override { inner.unregister_memory(memory); }
  Result<BulkTicket> expose(std::vector<std::span<std::byte>> ranges, uint64_t high, uint64_t low,
                            LandingObserver& landing) override {
    return inner.expose(std::move(ranges), high, low, landing);
  }
  void retract(uint64_t landing) override { inner.retract(landing); }
  void move(std::string_view to, const BulkTicket& ticket, TrafficClass traffic, BulkPart part,
            MoveDone done) override {
    inner.move(to, ticket, traffic, std::move(part), std::move(done));
  }
  void set_peer_observer(PeerObserver* set) override { observer = set; }
  std::vector<PeerState> peers() const override {
    ++questions;
    return states;
  }

  LoopbackTransport inner;
  PeerObserver* observer = nullptr;
  std::vector<PeerState> states;
  mutable int questions = 0;
};

}  // namespace

BOOST_AUTO_TEST_CASE(actors_hear_of_lost_peers_and_the_node_knows_who_has_joined) {
  auto owned = std::make_unique<FakePeers>();
  FakePeers& transport = *owned;
  std::promise<std::string> lost;
  {
    Node node(std::move(owned), 5);
    BOOST_TEST(node.address() == "10.0.0.1:7");
    const caf::actor actor = node.system().spawn([&lost]() -> caf::behavior {
      return {[&lost](const wire::PeerLost& mail) { lost.set_value(mail.node + ": " + mail.why); },
              [](const wire::Frame&) {}};
    });
    BOOST_REQUIRE(node.bind("worker", actor).ok());
    node.watch_peers();
    transport.states.resize(1);
    transport.states[0].node = "10.0.0.2:7";
    BOOST_TEST(!node.is_joined("10.0.0.2:7"));
    transport.states[0].connected = true;
    BOOST_TEST(node.is_joined("10.0.0.2:7"));
    BOOST_TEST(!node.is_joined("10.0.0.3:7"));
    transport.observer->on_peer_lost("10.0.0.2:7", {StatusCode::kUnavailable, "gone"});
    auto heard = lost.get_future();
    BOOST_REQUIRE((heard.wait_for(kPatience) == std::future_status::ready));
    BOOST_TEST(heard.get() == "10.0.0.2:7: gone");
  }
}

BOOST_AUTO_TEST_CASE(a_workers_name_is_its_endpoints) {
  BOOST_TEST((worker_id_of("10.0.0.2:7/worker") == worker_id_of("10.0.0.2:7/worker")));
  BOOST_TEST((worker_id_of("10.0.0.2:7/worker") != worker_id_of("10.0.0.2:8/worker")));
}

BOOST_AUTO_TEST_CASE(clocks_of_peers_are_known_once_a_keepalive_was_answered) {
  FakePeers transport;
  transport.states.resize(3);
  transport.states[0].node = "a:1";
  transport.states[0].connected = true;
  transport.states[0].round_trip = std::chrono::microseconds(80);
  transport.states[0].clock_offset = std::chrono::seconds(-3);
  transport.states[1].node = "b:1";
  transport.states[1].connected = true;
  transport.states[2].node = "c:1";
  transport.states[2].round_trip = std::chrono::microseconds(80);
  ManualClock clock;
  PeerClocks clocks(transport, clock);
  BOOST_TEST((clocks.offset("a:1") == Duration(std::chrono::seconds(-3))));
  BOOST_TEST((clocks.offset("b:1") == std::nullopt));
  BOOST_TEST((clocks.offset("c:1") == std::nullopt));
  BOOST_TEST(transport.questions == 1);
  transport.states[1].round_trip = std::chrono::microseconds(90);
  clock.advance(std::chrono::seconds(1));
  BOOST_TEST((clocks.offset("b:1") == Duration(0)));
  BOOST_TEST(transport.questions == 2);
}

BOOST_AUTO_TEST_SUITE_END()
