#include "loadgen/url.h"

#include <boost/test/unit_test.hpp>

namespace troupe::loadgen {
namespace {

BOOST_AUTO_TEST_SUITE(url)

BOOST_AUTO_TEST_CASE(the_parts_of_a_url_are_found) {
  BOOST_TEST((parse_url("http://127.0.0.1:8000").value() == Url{false, "127.0.0.1", 8000, ""}));
  BOOST_TEST((parse_url("http://h/").value() == Url{false, "h", 80, ""}));
  BOOST_TEST((parse_url("https://h/v1/").value() == Url{true, "h", 443, ""}));
  BOOST_TEST((parse_url("http://[::1]:9/a/b/v1").value() == Url{false, "::1", 9, "/a/b"}));
  BOOST_TEST(parse_url("http://[::1]:9")->address() == "[::1]:9");
  BOOST_TEST(parse_url("http://h:80")->host_header() == "h");
  BOOST_TEST(parse_url("http://h:81")->host_header() == "h:81");
  BOOST_TEST(parse_url("https://[::1]")->host_header() == "[::1]");
}

BOOST_AUTO_TEST_CASE(what_is_no_url_of_a_server_is_refused_with_the_fix) {
  for (const char* bad : {"", "h", "ftp://h", "http://", "http://:80", "http://h:", "http://h:0",
                          "http://h:x", "http://h:99999", "http://[::1", "http://[::1]9",
                          "http://h/?q", "http://u@h", "http://h h"}) {
    const auto url = parse_url(bad);
    BOOST_TEST(!url.ok(), bad);
    BOOST_TEST(url.status().message().find("--url http://127.0.0.1:8000") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
