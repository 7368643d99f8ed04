#include "transport/loopback/loopback_transport.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/transport/conformance.h"

BOOST_AUTO_TEST_SUITE(loopback_transport)

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite) {
  troupe::LoopbackTransport transport;
  troupe::conformance::check_conformance(transport, transport);
}

BOOST_AUTO_TEST_CASE(one_endpoint_may_send_to_another_from_inside_its_receiver) {
  troupe::LoopbackTransport transport;
  struct Forwarder final : troupe::MessageReceiver {
    explicit Forwarder(troupe::Transport& t) : transport(t) {}
    void on_message(troupe::MessageWords words) override {
      sent = transport.send("b", troupe::TrafficClass::kControl, std::move(words));
    }
    troupe::Transport& transport;
    troupe::Status sent;
  } forwarder(transport);
  troupe::conformance::Collector collector;
  BOOST_REQUIRE(transport.bind("a", forwarder).ok());
  BOOST_REQUIRE(transport.bind("b", collector).ok());
  BOOST_TEST(transport.send("a", troupe::TrafficClass::kControl, {1, 2}).ok());
  BOOST_TEST(forwarder.sent.ok());
  BOOST_TEST(collector.received().size() == 1U);
  transport.unbind("a");
  transport.unbind("b");
}

BOOST_AUTO_TEST_CASE(knows_no_other_node) {
  troupe::LoopbackTransport transport;
  troupe::conformance::Memory memory(transport, 64, 1);
  troupe::conformance::Ends ends;
  transport.move("10.0.0.7:7000", {}, troupe::TrafficClass::kBulk, {0, {memory.span()}},
                 ends.done());
  BOOST_REQUIRE(ends.all().size() == 1U);
  BOOST_TEST((ends.all()[0].code() == troupe::StatusCode::kUnavailable));
  BOOST_TEST((transport.send("10.0.0.7:7000/x", troupe::TrafficClass::kControl, {1}).code() ==
              troupe::StatusCode::kUnavailable));
  BOOST_TEST(transport.peers().empty());
}

BOOST_AUTO_TEST_SUITE_END()
