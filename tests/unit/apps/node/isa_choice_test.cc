#include "apps/node/isa_choice.h"

#include <boost/test/unit_test.hpp>

#include "base/os/system_clock.h"

namespace troupe {
namespace {

BOOST_AUTO_TEST_SUITE(isa_choice)

BOOST_AUTO_TEST_CASE(every_instruction_set_of_this_machine_passes_its_trial) {
  const SystemClock clock;
  for (const CpuIsa isa : kCpuIsas) {
    if (!supports(isa)) continue;
    const Trial trial = try_out(isa, CpuIsa::kScalar, clock);
    BOOST_TEST((trial == Trial::kFaster || trial == Trial::kSlower),
               to_string(isa) << ": " << static_cast<int>(trial));
  }
}

// Where a machine lacks one, its first instruction ends the copy: as a kernel does that was built
// wrong.
BOOST_AUTO_TEST_CASE(one_that_the_machine_lacks_dies_in_its_trial_alone) {
  const SystemClock clock;
  for (const CpuIsa isa : kCpuIsas)
    if (!supports(isa)) BOOST_TEST((try_out(isa, CpuIsa::kScalar, clock) == Trial::kDied));
}

BOOST_AUTO_TEST_CASE(auto_takes_one_that_the_machine_has_and_names_are_checked) {
  const SystemClock clock;
  const auto chosen = choose_isa("auto", clock);
  BOOST_REQUIRE(chosen.ok());
  BOOST_TEST(supports(chosen.value()));
  BOOST_TEST((chosen.value() == detect_best_cpu_isa() || detect_best_cpu_isa() == CpuIsa::kAmx));
  BOOST_TEST((choose_isa("scalar", clock).value() == CpuIsa::kScalar));
  const auto unknown = choose_isa("avx3", clock);
  BOOST_TEST((unknown.status().code() == StatusCode::kInvalidArgument));
  BOOST_TEST(unknown.status().message().find("avx3") != std::string::npos);
  for (const CpuIsa isa : kCpuIsas) {
    if (supports(isa)) continue;
    const auto lacking = choose_isa(std::string(to_string(isa)), clock);
    BOOST_TEST((lacking.status().code() == StatusCode::kUnsupported));
  }
  BOOST_TEST(choose_threads(3) == 3U);
  BOOST_TEST(choose_threads(0) >= 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
