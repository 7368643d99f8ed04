#include "actors/gateway/http/listen_socket.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace troupe {
namespace {

BOOST_AUTO_TEST_CASE(a_taken_port_is_named_with_the_way_out) {
  const auto first = open_listen_socket("127.0.0.1", 0);
  BOOST_REQUIRE_MESSAGE(first.ok(), first.status().message());
  BOOST_TEST(first->port != 0);
  const auto second = open_listen_socket("127.0.0.1", first->port);
  BOOST_REQUIRE(!second.ok());
  BOOST_TEST((second.status().code() == StatusCode::kUnavailable));
  BOOST_TEST(second.status().message().find(std::to_string(first->port)) != std::string::npos);
  BOOST_TEST(second.status().message().find("--port") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_foreign_or_malformed_host_is_refused) {
  for (const char* host : {"192.0.2.1", "300.1.2.3", "no such host"}) {
    const auto bound = open_listen_socket(host, 0);
    BOOST_REQUIRE_MESSAGE(!bound.ok(), host);
    BOOST_TEST((bound.status().code() == StatusCode::kInvalidArgument));
    BOOST_TEST(bound.status().message().find(host) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(ipv6_and_names_are_bound) {
  BOOST_TEST(open_listen_socket("localhost", 0).ok());
  const auto six = open_listen_socket("::1", 0);
  // A machine without IPv6 says so.
  if (!six.ok()) BOOST_TEST(six.status().message().find("::1") != std::string::npos);
}

}  // namespace
}  // namespace troupe
