#include "transport/ucx/ucx_transport.h"

#include <boost/test/unit_test.hpp>

#include "base/os/entropy.h"
#include "base/os/system_clock.h"
#include "tests/unit/transport/conformance.h"

namespace troupe {
namespace {

using conformance::Collector;
using conformance::Ends;
using conformance::LandingLog;
using conformance::Memory;
using conformance::PeerLog;

const SystemClock kClock;

UcxOptions options(uint64_t incarnation = 1) {
  UcxOptions out;
  out.secret = "a secret that nobody knows";
  out.incarnation = incarnation;
  out.random = entropy_u64;
  return out;
}

std::unique_ptr<UcxTransport> start(UcxOptions with = options()) {
  auto transport = UcxTransport::start(std::move(with), kClock);
  BOOST_REQUIRE_MESSAGE(transport.ok(), transport.status().message());
  return std::move(transport).value();
}

BOOST_AUTO_TEST_SUITE(ucx_transport)

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite) {
  const auto a = start(), b = start();
  conformance::check_conformance(*a, *b);
}

BOOST_AUTO_TEST_CASE(passes_the_conformance_suite_with_itself) {
  const auto a = start();
  conformance::check_conformance(*a, *a);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
