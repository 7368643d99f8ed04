#include "kernels/cpu/isa.h"

#include <boost/test/unit_test.hpp>

namespace troupe {
namespace {

BOOST_AUTO_TEST_CASE(names_of_instruction_sets_are_read_back) {
  for (const CpuIsa isa : kCpuIsas) BOOST_TEST((parse_cpu_isa(to_string(isa)) == isa));
  BOOST_TEST(!parse_cpu_isa("").has_value());
  BOOST_TEST(!parse_cpu_isa("AVX2").has_value());
  BOOST_TEST(!parse_cpu_isa("avx").has_value());
}

BOOST_AUTO_TEST_CASE(the_best_instruction_set_is_supported_and_includes_the_lesser_ones) {
  const CpuIsa best = detect_best_cpu_isa();
  BOOST_TEST_MESSAGE("this machine: " << to_string(best));
  BOOST_TEST(supports(CpuIsa::kScalar));
  for (const CpuIsa isa : kCpuIsas) BOOST_TEST(supports(isa) == (isa <= best));
}

BOOST_AUTO_TEST_CASE(what_is_lacking_is_named_and_only_that) {
  for (const CpuIsa isa : kCpuIsas) {
    const std::string text = describe_lack(isa);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST((text.find("lacks none") != std::string::npos) == supports(isa));
    }
  }
  const std::string text = describe_lack(CpuIsa::kAmx);
  BOOST_TEST((text.find("avx2") > text.find(" has ")) == supports(CpuIsa::kAvx2));
}

// The compiler's own detection is independent of ours.
BOOST_AUTO_TEST_CASE(detection_agrees_with_the_compilers) {
  __builtin_cpu_init();
  BOOST_TEST(supports(CpuIsa::kAvx2) ==
             (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")));
  BOOST_TEST(supports(CpuIsa::kAvx512) ==
             (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")));
  BOOST_TEST((!supports(CpuIsa::kAvx512Vnni) || __builtin_cpu_supports("avx512vnni")));
}

}  // namespace
}  // namespace troupe
