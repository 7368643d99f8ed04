#include "base/config/nearest.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

const std::vector<std::string> kNames = {"threads", "port", "http-port", "kv-memory-mib"};

BOOST_AUTO_TEST_CASE(a_typing_mistake_finds_its_name) {
  BOOST_TEST(nearest("thread", kNames).value() == "threads");
  BOOST_TEST(nearest("htpp-port", kNames).value() == "http-port");
  BOOST_TEST(nearest("prot", kNames).value() == "port");
  BOOST_TEST(nearest("pot", kNames).value() == "port");
  BOOST_TEST(nearest("kv_memory_mib", kNames).value() == "kv-memory-mib");
  BOOST_TEST(nearest("http", kNames).value() == "http-port");
}

BOOST_AUTO_TEST_CASE(what_resembles_nothing_finds_nothing) {
  BOOST_TEST(!nearest("", kNames).has_value());
  BOOST_TEST(!nearest("colour", kNames).has_value());
  BOOST_TEST(!nearest(std::string(1000, 'x'), kNames).has_value());
  BOOST_TEST(!nearest("threads", {}).has_value());
}

}  // namespace
}  // namespace troupe
