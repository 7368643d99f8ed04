#include "loadgen/arrivals.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

#include "loadgen/measures.h"

namespace troupe::loadgen {
namespace {

constexpr size_t kDraws = 20000;

// Seconds between each two of the first arrivals.
std::vector<double> gaps_of(Arrivals& arrivals) {
  std::vector<double> gaps;
  Duration last{0};
  for (size_t i = 0; i < kDraws; ++i) {
    const Duration next = arrivals.next().value();
    BOOST_REQUIRE((next >= last));
    gaps.push_back(to_seconds(next - last));
    last = next;
  }
  return gaps;
}

void has_mean_and_variation(Arrivals& arrivals, double mean, double variation) {
  const Summary gaps = summarize(gaps_of(arrivals));
  // The mean of n gaps has a standard error of variation / sqrt(n); five of them are allowed.
  const double slack = 5.0 * variation / std::sqrt(double{kDraws});
  BOOST_TEST(std::abs(gaps.mean / mean - 1.0) < slack + 1e-6, gaps.mean);
  BOOST_TEST(std::abs(gaps.std / gaps.mean - variation) < 0.06 * variation + 1e-6,
             gaps.std / gaps.mean);
}

BOOST_AUTO_TEST_SUITE(arrivals)

BOOST_AUTO_TEST_CASE(gaps_have_the_rate_and_the_variation_that_burstiness_says) {
  for (const double burstiness : {1.0, 0.25, 4.0, 0.05}) {
    has_mean_and_variation(*gamma_arrivals(20.0, burstiness, 7), 0.05, 1.0 / std::sqrt(burstiness));
  }
  const auto constant = constant_arrivals(20.0);
  BOOST_TEST((constant->next() == Duration(0)));
  has_mean_and_variation(*constant, 0.05, 0.0);
}

BOOST_AUTO_TEST_CASE(the_gaps_of_a_poisson_process_are_exponential) {
  auto gaps = gaps_of(*gamma_arrivals(1.0, 1.0, 3));
  std::sort(gaps.begin(), gaps.end());
  for (const double percent : {10.0, 50.0, 90.0, 99.0}) {
    const double expected = -std::log(1.0 - percent / 100.0);
    BOOST_TEST(std::abs(percentile(gaps, percent) / expected - 1.0) < 0.06);
  }
}

BOOST_AUTO_TEST_CASE(a_seed_fixes_the_arrivals) {
  const auto a = gamma_arrivals(5.0, 1.0, 1), b = gamma_arrivals(5.0, 1.0, 1),
             c = gamma_arrivals(5.0, 1.0, 2);
  const auto first = a->next();
  BOOST_TEST((first == b->next()));
  BOOST_TEST((first != c->next()));
}

BOOST_AUTO_TEST_CASE(a_trace_is_replayed_at_its_scale_and_ends) {
  Trace trace;
  trace.requests.resize(2);
  trace.requests[1].arrival = std::chrono::seconds(10);
  const auto arrivals = trace_arrivals(trace, 0.1);
  BOOST_TEST((arrivals->next() == Duration(0)));
  BOOST_TEST((arrivals->next() == std::chrono::seconds(1)));
  BOOST_TEST(!arrivals->next().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe::loadgen
