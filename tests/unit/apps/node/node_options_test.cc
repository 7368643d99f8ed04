#include "apps/node/node_options.h"

#include <boost/test/unit_test.hpp>

using namespace troupe;

BOOST_AUTO_TEST_SUITE(node_options)

BOOST_AUTO_TEST_CASE(a_node_is_seen_by_the_routers_at_the_address_of_its_way_to_them) {
  NodeOptions options;
  options.join = {"127.0.0.1:7000"};
  BOOST_REQUIRE(complete_node_options(options).ok());
  BOOST_TEST(options.host == "127.0.0.1");
  BOOST_TEST(options.join.front() == "127.0.0.1:7000");
}

BOOST_AUTO_TEST_CASE(names_become_addresses) {
  NodeOptions options;
  options.host = "localhost";
  options.join = {"localhost:7000"};
  BOOST_REQUIRE(complete_node_options(options).ok());
  BOOST_TEST(options.host == "127.0.0.1");
  BOOST_TEST(options.join.front() == "127.0.0.1:7000");
}

BOOST_AUTO_TEST_CASE(without_routers_some_address_is_found) {
  NodeOptions options;
  BOOST_REQUIRE(complete_node_options(options).ok());
  BOOST_TEST(!options.host.empty());
}

BOOST_AUTO_TEST_CASE(malformed_addresses_name_their_setting) {
  for (const char* address : {"", "host", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", ":7000",
                              "127.0.0.1:70000", "127.0.0.1:0"}) {
    NodeOptions options;
    options.join = {address};
    const Status status = complete_node_options(options);
    BOOST_TEST(!status.ok(), address);
    BOOST_TEST(status.message().starts_with("join"), status.message());
  }
  NodeOptions options;
  options.host = "300.1.1.1";
  const Status status = complete_node_options(options);
  BOOST_TEST(status.message().starts_with("host"), status.message());
}

BOOST_AUTO_TEST_SUITE_END()
