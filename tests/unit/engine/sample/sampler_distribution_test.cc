// Whether many draws follow the distribution that the parameters describe. Seeds are fixed: a test
// either always passes or never does.

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "engine/sample/sampler.h"
#include "tests/unit/engine/sample/reference_sampler.h"

namespace troupe {
namespace {

// Pearson's statistic of draws at positions 0, 1, … against the definition's probabilities, per
// degree of freedom: about 1 when they agree.
double chi_square(const std::vector<float>& logits, SamplingParams params, uint64_t seed) {
  constexpr int kDraws = 20'000;
  Sampler sampler(static_cast<uint32_t>(logits.size()), {});
  params.seed = seed;
  std::map<TokenId, int> counts;
  for (uint64_t position = 0; position < kDraws; ++position)
    ++counts[sampler.sample(logits, params, {.position = position}).value().token];
  double statistic = 0.0;
  const auto entries = reference::filtered(logits, params);
  for (const auto& entry : entries) {
    const double expected = kDraws * entry.probability;
    const double difference = counts[entry.token] - expected;
    statistic += difference * difference / expected;
    counts.erase(entry.token);
  }
  BOOST_TEST(counts.empty());  // nothing was drawn that the filters took out
  return statistic / static_cast<double>(entries.size() - 1);
}

const std::vector<float> kLogits = {1.0F, 0.5F,  -0.5F, 2.0F, 0.0F,  1.5F, -1.0F, 0.7F,
                                    0.7F, -2.0F, 1.2F,  0.3F, -0.1F, 0.9F, 1.9F,  -0.7F};

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler_distribution)

BOOST_AUTO_TEST_CASE(draws_follow_the_probabilities) {
  std::vector<SamplingParams> variants(6);
  variants[1].temperature = 0.5F;
  variants[2].temperature = 2.0F;
  variants[3].top_k = 5;
  variants[4].top_p = 0.7F;
  variants[5].min_p = 0.3F;
  for (const SamplingParams& params : variants)
    for (const uint64_t seed : {1, 2, 3}) {
      const double statistic = chi_square(kLogits, params, seed);
      // With 4 degrees of freedom or more, one in 10,000 fair runs is above 6.
      BOOST_TEST(statistic < 6.0);
    }
}

BOOST_AUTO_TEST_CASE(a_wrong_distribution_would_be_noticed) {
  auto shifted = kLogits;
  shifted[3] += 0.3F;
  Sampler sampler(16, {});
  SamplingParams params;
  int hits = 0, wanted = 0;
  for (uint64_t position = 0; position < 20'000; ++position) {
    wanted += sampler.sample(kLogits, params, {.position = position}).value().token == 3;
    hits += sampler.sample(shifted, params, {.position = position}).value().token == 3;
  }
  BOOST_TEST(hits > wanted + 500);
}

BOOST_AUTO_TEST_CASE(draws_depend_on_seed_and_position_alone) {
  Sampler one(16, {}), other(16, {});
  SamplingParams params;
  std::vector<TokenId> forward, backward;
  for (uint64_t position = 0; position < 100; ++position)
    forward.push_back(one.sample(kLogits, params, {.position = position}).value().token);
  for (uint64_t position = 100; position-- > 0;)
    backward.push_back(other.sample(kLogits, params, {.position = position}).value().token);
  BOOST_TEST(forward == std::vector<TokenId>(backward.rbegin(), backward.rend()));
  params.seed = 1;
  std::vector<TokenId> reseeded;
  for (uint64_t position = 0; position < 100; ++position)
    reseeded.push_back(one.sample(kLogits, params, {.position = position}).value().token);
  BOOST_TEST(forward != reseeded);
}

BOOST_AUTO_TEST_CASE(the_seeds_of_choices_differ_from_each_other_and_from_neighbours) {
  std::set<uint64_t> seeds;
  for (uint64_t request = 0; request < 50; ++request)
    for (uint32_t choice = 0; choice < 50; ++choice) seeds.insert(choice_seed(request, choice));
  BOOST_TEST(seeds.size() == 2500U);
  BOOST_TEST(choice_seed(7, 3) == choice_seed(7, 3));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
