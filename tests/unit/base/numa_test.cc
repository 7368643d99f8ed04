#include "base/os/numa.h"

#include <sched.h>

#include <boost/test/unit_test.hpp>
#include <string>

#include "base/os/forked_call.h"

namespace troupe {
namespace {

constexpr std::chrono::seconds kLong{30};

BOOST_AUTO_TEST_SUITE(numa)

BOOST_AUTO_TEST_CASE(a_process_that_stays_on_a_node_has_some_of_its_cores_and_no_others) {
  const auto nodes = numa_nodes();
  BOOST_TEST_REQUIRE(nodes.ok());
  BOOST_TEST_REQUIRE(nodes.value() >= 1U);
  // In a copy, since it holds for the whole process and for ever.
  const auto stayed = call_in_fork(
      [] {
        cpu_set_t before, after, common;
        CPU_ZERO(&before);
        if (sched_getaffinity(0, sizeof before, &before) != 0) return 1;
        if (!stay_on_numa_node(0).ok()) return 2;
        if (sched_getaffinity(0, sizeof after, &after) != 0) return 3;
        CPU_AND(&common, &before, &after);
        return CPU_COUNT(&after) > 0 && CPU_EQUAL(&common, &after) ? 0 : 4;
      },
      kLong);
  BOOST_TEST((stayed == 0));
}

BOOST_AUTO_TEST_CASE(a_node_that_is_not_there_is_named_with_those_that_are) {
  const uint32_t nodes = numa_nodes().value();
  const Status status = stay_on_numa_node(nodes);
  BOOST_TEST((status.code() == StatusCode::kInvalidArgument));
  BOOST_TEST(status.message().find("no memory node " + std::to_string(nodes)) != std::string::npos);
  BOOST_TEST(status.message().find("this machine has " + std::to_string(nodes)) !=
             std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
