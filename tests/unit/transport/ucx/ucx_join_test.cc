// Who may join, who may not, and what strangers can do.

#include <boost/test/unit_test.hpp>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/transport/ucx/ucx_fixture.h"
#include "transport/session/frames.h"
#include "transport/session/handshake.h"
#include "transport/session/limits.h"

namespace troupe::conformance {
namespace {

// A plain TCP client.
class Stranger final {
 public:
  explicit Stranger(const std::string& node) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(std::stoi(node.substr(node.rfind(':') + 1))));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    BOOST_REQUIRE(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    timeval patience{10, 0};
    BOOST_REQUIRE(::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
  }
  ~Stranger() { ::close(fd_); }
  void say(std::string_view bytes) {
    static_cast<void>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  void finish() { ::shutdown(fd_, SHUT_WR); }
  // All that comes until the other side closes.
  [[nodiscard]] std::string hear() {
    std::string out;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::recv(fd_, buffer, sizeof buffer, 0)) > 0;) {
      out.append(buffer, static_cast<size_t>(got));
    }
    return out;
  }

 private:
  int fd_;
};

void still_works(UcxTransport& a) {
  const auto b = start_ucx();
  Collector collector;
  BOOST_REQUIRE(a.bind("alive", collector).ok());
  BOOST_TEST(b->send(a.address_of("alive"), TrafficClass::kControl, {1}).ok());
  BOOST_TEST(collector.wait_for(1));
  a.unbind("alive");
}

BOOST_AUTO_TEST_SUITE(ucx_join)

BOOST_AUTO_TEST_CASE(a_node_with_another_secret_is_refused) {
  const auto a = start_ucx();
  UcxOptions other = ucx_options();
  other.secret = "another secret, just as long";
  const auto b = start_ucx(other);
  Watch at_a(*a), at_b(*b);
  Collector collector;
  BOOST_REQUIRE(a->bind("x", collector).ok());
  BOOST_TEST(b->send(a->address_of("x"), TrafficClass::kControl, {1}).ok());
  BOOST_TEST(at_b.log.wait_for_lost(1, kNoticed));
  BOOST_TEST(at_b.log.lost()[0].second.message().find("secret") != std::string::npos);
  // Asking again at once is answered without asking the other.
  BOOST_TEST((b->send(a->address_of("x"), TrafficClass::kControl, {1}).code() ==
              StatusCode::kInvalidArgument));
  a->unbind("x");
  BOOST_TEST(collector.received().empty());
  BOOST_TEST(at_a.log.joined().empty());
  BOOST_TEST(at_b.log.joined().empty());
}

BOOST_AUTO_TEST_CASE(nodes_that_differ_in_the_record_both_name_field_and_values) {
  UcxOptions with_a = ucx_options(), with_b = ucx_options();
  with_a.record = {{"schema", "1"}, {"model digest", "aaa"}, {"only here", "x"}};
  with_b.record = {{"model digest", "bbb"}, {"schema", "1"}};
  const auto a = start_ucx(with_a), b = start_ucx(with_b);
  Watch at_a(*a), at_b(*b);
  BOOST_TEST(a->send(b->address_of("x"), TrafficClass::kControl, {1}).ok());
  BOOST_TEST(at_a.log.wait_for_lost(1, kNoticed));
  BOOST_TEST(at_b.log.wait_for_lost(1, kNoticed));
  const std::string text_a = at_a.log.lost()[0].second.message();
  const std::string text_b = at_b.log.lost()[0].second.message();
  BOOST_TEST(text_a.find("model digest: this node has aaa, node " + b->node() + " has bbb") !=
                 std::string::npos,
             text_a);
  BOOST_TEST(text_b.find("model digest: this node has bbb, node " + a->node() + " has aaa") !=
                 std::string::npos,
             text_b);
}

BOOST_AUTO_TEST_CASE(a_restarted_node_replaces_its_former_self_and_an_old_one_is_refused) {
  const auto a = start_ucx();
  Watch at_a(*a);
  Collector collector;
  BOOST_REQUIRE(a->bind("x", collector).ok());
  UcxOptions again = ucx_options(10);
  for (const uint64_t incarnation : {10, 11}) {
    again.incarnation = incarnation;
    const auto b = start_ucx(again);
    again.port = static_cast<uint16_t>(std::stoi(b->node().substr(b->node().rfind(':') + 1)));
    BOOST_TEST(b->send(a->address_of("x"), TrafficClass::kControl, {incarnation}).ok());
    BOOST_TEST(collector.wait_for(incarnation - 9));
  }
  BOOST_TEST(at_a.log.wait_for_lost(2));
  BOOST_TEST(at_a.log.joined().size() == 2U);
  again.incarnation = 9;
  const auto old = start_ucx(again);
  Watch at_old(*old);
  BOOST_TEST(old->send(a->address_of("x"), TrafficClass::kControl, {9}).ok());
  BOOST_TEST(at_old.log.wait_for_lost(1));
  BOOST_TEST(
      at_old.log.lost()[0].second.message().find("older than the known 11") != std::string::npos,
      at_old.log.lost()[0].second.message());
  BOOST_TEST(at_a.log.joined().size() == 2U);
  a->unbind("x");
}

BOOST_AUTO_TEST_CASE(a_node_reached_by_a_name_that_is_not_its_own_is_refused) {
  const auto a = start_ucx(), b = start_ucx();
  Watch at_a(*a);
  const std::string alias = "127.0.0.2" + b->node().substr(b->node().rfind(':'));
  UcxOptions everywhere = ucx_options();
  everywhere.host = "0.0.0.0";
  everywhere.net_devices = "lo";
  const auto c = start_ucx(everywhere);
  const std::string name = "127.0.0.1" + c->node().substr(c->node().rfind(':'));
  BOOST_TEST(a->send(name + "/x", TrafficClass::kControl, {1}).ok());
  BOOST_TEST(at_a.log.wait_for_lost(1));
  BOOST_TEST(at_a.log.lost()[0].second.message().find("calls itself 0.0.0.0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(bytes_of_strangers_close_their_connection_and_nothing_else) {
  const auto a = start_ucx();
  std::string noise;
  for (int i = 0; i < 5000; ++i) noise.push_back(static_cast<char>(entropy_u64()));
  const std::string good = encode_frame({FrameKind::kHello, "troupe/session\n but not further"});
  for (const std::string& bytes :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(100000, '\0'),
        std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), noise,
        std::string("\xff\xff\xff\xff\x01", 5), std::string("\x02\x00\x00\x00\x09x", 6), good,
        encode_frame({FrameKind::kPing, "12345678"}), encode_frame({FrameKind::kProof, {}}),
        encode_frame({FrameKind::kRefuse, "why"})}) {
    Stranger stranger(a->node());
    stranger.say(bytes);
    static_cast<void>(stranger.hear());  // ends, because the node closes
  }
  for (const size_t size : {size_t{0}, size_t{3}, size_t{20}}) {
    Stranger stranger(a->node());  // truncated
    stranger.say(good.substr(0, size));
    stranger.finish();
    BOOST_TEST(stranger.hear().empty());
  }
  still_works(*a);
}

BOOST_AUTO_TEST_CASE(who_says_nothing_is_disconnected_at_the_deadline) {
  const auto a = start_ucx();
  const TimePoint start = kClock.now();
  Stranger stranger(a->node());
  BOOST_TEST(stranger.hear().empty());
  const Duration took = kClock.now() - start;
  BOOST_TEST((took > limits::kHandshakeDeadline - std::chrono::milliseconds(100)));
  BOOST_TEST((took < limits::kHandshakeDeadline + std::chrono::milliseconds(1000)));
}

BOOST_AUTO_TEST_CASE(options_that_break_a_rule_are_refused) {
  const auto code = [](const UcxOptions& with) {
    return UcxTransport::start(with, kClock).status().code();
  };
  UcxOptions wrong = ucx_options();
  wrong.secret = "short";
  BOOST_TEST((code(wrong) == StatusCode::kInvalidArgument));
  wrong = ucx_options();
  wrong.host = "localhost";
  BOOST_TEST((code(wrong) == StatusCode::kInvalidArgument));
  wrong = ucx_options();
  wrong.record = {{"twice", "1"}, {"twice", "2"}};
  BOOST_TEST((code(wrong) == StatusCode::kInvalidArgument));
  const auto a = start_ucx();
  wrong = ucx_options();
  wrong.port = static_cast<uint16_t>(std::stoi(a->node().substr(a->node().rfind(':') + 1)));
  BOOST_TEST((code(wrong) == StatusCode::kUnavailable));
  BOOST_TEST(resolve_node("localhost:7000").value() == "127.0.0.1:7000");
  BOOST_TEST((resolve_node("localhost").status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST((resolve_node("no.such.host.invalid:1").status().code() == StatusCode::kNotFound));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::conformance
