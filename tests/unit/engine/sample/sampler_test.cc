#include "engine/sample/sampler.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/engine/sample/reference_sampler.h"

namespace troupe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> random_logits(size_t count, uint64_t seed, float spread = 3.0F) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0.0F, spread);
  std::vector<float> logits(count);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

SamplingParams greedy() {
  SamplingParams params;
  params.temperature = 0.0F;
  return params;
}

TokenId sampled(Sampler& sampler, const std::vector<float>& logits, const SamplingParams& params,
                const SampleContext& context = {}) {
  const auto token = sampler.sample(logits, params, context);
  BOOST_REQUIRE_MESSAGE(token.ok(), token.status().message());
  return token.value().token;
}

bool fails_internally(Sampler& sampler, const std::vector<float>& logits,
                      const SamplingParams& params, const SampleContext& context = {}) {
  const auto token = sampler.sample(logits, params, context);
  return !token.ok() && token.status().code() == StatusCode::kInternal;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sampler)

BOOST_AUTO_TEST_CASE(greedy_takes_the_first_of_the_highest_at_every_size_and_place) {
  for (const size_t count : {1, 2, 15, 16, 17, 31, 64, 100}) {
    Sampler sampler(static_cast<uint32_t>(count), {});
    for (size_t at = 0; at < count; ++at) {
      std::vector<float> logits(count, -7.5F);
      logits[at] = -1.0F;
      if (at + 1 < count) logits[count - 1] = -1.0F;
      BOOST_TEST(sampled(sampler, logits, greedy()) == static_cast<TokenId>(at));
    }
    BOOST_TEST(sampled(sampler, std::vector<float>(count, 0.0F), greedy()) == 0);
  }
  // Zeros of both signs are equal.
  Sampler sampler(3, {});
  BOOST_TEST(sampled(sampler, {-0.0F, 0.0F, -1.0F}, greedy()) == 0);
}

BOOST_AUTO_TEST_CASE(temperatures_below_1e_5_are_greedy) {
  Sampler sampler(1000, {});
  const auto logits = random_logits(1000, 1);
  const TokenId wanted = sampled(sampler, logits, greedy());
  SamplingParams params;
  for (const float temperature : {1e-5F, 9e-6F, 1e-12F, 1e-38F, 1e-45F, 0.0F, kNan}) {
    params.temperature = temperature;
    for (uint64_t position = 0; position < 50; ++position)
      BOOST_TEST(sampled(sampler, logits, params, {.position = position}) == wanted);
  }
}

BOOST_AUTO_TEST_CASE(draws_are_those_of_the_definition_for_random_logits_and_parameters) {
  std::mt19937_64 random(3);
  const auto chance = [&random](double p) { return std::ldexp(double(random() >> 11), -53) < p; };
  size_t different = 0;
  for (int round = 0; round < 3000; ++round) {
    const auto count = static_cast<uint32_t>(1 + random() % 400);
    Sampler sampler(count, {0});
    auto logits = random_logits(count, random(), chance(0.3) ? 0.2F : 4.0F);
    if (chance(0.3))  // ties
      for (float& logit : logits) logit = std::round(logit);
    for (float& logit : logits)
      if (chance(0.1)) logit = -kInfinity;
    logits[count - 1] = 1.0F;

    SamplingParams params;
    params.seed = random();
    params.temperature = static_cast<float>(0.1 + 0.1 * static_cast<double>(random() % 19));
    if (chance(0.5)) params.top_k = static_cast<int32_t>(random() % (count + 20));
    if (chance(0.5)) params.top_p = 0.05F * static_cast<float>(1 + random() % 19);
    if (chance(0.3)) params.min_p = 0.05F * static_cast<float>(random() % 21);
    if (chance(0.3)) params.repetition_penalty = 1.3F;
    if (chance(0.3)) params.frequency_penalty = 0.7F;
    if (chance(0.3)) params.presence_penalty = -1.1F;
    if (chance(0.3)) params.logit_bias = {{static_cast<TokenId>(random() % count), 2.5F}};
    params.min_tokens = count > 1 && chance(0.3) ? 5 : 0;
    std::vector<TokenId> history(random() % 50);
    for (TokenId& token : history) token = static_cast<TokenId>(random() % count);
    SampleContext context{.position = random() % 10'000, .history = history};
    context.prompt_tokens = static_cast<uint32_t>(random() % (history.size() + 1));
    context.output_tokens = static_cast<uint32_t>(history.size()) - context.prompt_tokens;

    const auto entries =
        reference::filtered(reference::adjusted(logits, params, context, {0}), params);
    const TokenId wanted = reference::drawn(entries, params.seed, context.position);
    different += sampled(sampler, logits, params, context) != wanted ? 1 : 0;
  }
  // Rounding may move a border that a draw hits, but that is one chance in a thousand million.
  BOOST_TEST(different == 0U);
}

BOOST_AUTO_TEST_CASE(penalties_follow_their_formulas) {
  Sampler sampler(4, {});
  SamplingParams params = greedy();
  // Token 0 is in the prompt, 1 twice in the output, 2 once in the output.
  const std::vector<TokenId> history = {0, 1, 2, 1};
  const SampleContext context{.history = history, .prompt_tokens = 1, .output_tokens = 3};
  params.repetition_penalty = 2.0F;  // 4 → 2, 3 → 1.5, −1 → −2
  BOOST_TEST(sampled(sampler, {4.0F, 3.0F, -1.0F, 1.9F}, params, context) == 0);
  BOOST_TEST(sampled(sampler, {4.0F, 3.0F, -1.0F, 2.1F}, params, context) == 3);
  BOOST_TEST(sampled(sampler, {-9.0F, -9.0F, -1.0F, -1.9F}, params, context) == 3);
  params = greedy();
  params.frequency_penalty = 1.0F;  // counts only output
  BOOST_TEST(sampled(sampler, {1.0F, 2.9F, 1.9F, 0.0F}, params, context) == 0);
  BOOST_TEST(sampled(sampler, {1.0F, 3.1F, 1.9F, 0.0F}, params, context) == 1);
  params = greedy();
  params.presence_penalty = 1.0F;
  BOOST_TEST(sampled(sampler, {1.0F, 1.9F, 1.9F, 0.0F}, params, context) == 0);
  BOOST_TEST(sampled(sampler, {1.0F, 2.1F, 1.9F, 0.0F}, params, context) == 1);
}

BOOST_AUTO_TEST_CASE(one_call_leaves_nothing_behind_for_the_next) {
  Sampler used(500, {}), fresh(500, {});
  const auto logits = random_logits(500, 4);
  std::vector<TokenId> history(100, 7);
  SamplingParams penalised = greedy();
  penalised.repetition_penalty = 5.0F;
  penalised.frequency_penalty = 2.0F;
  static_cast<void>(used.sample(logits, penalised, {.history = history, .output_tokens = 100}));
  history.push_back(-1);  // refused half-way
  BOOST_TEST(fails_internally(used, logits, penalised, {.history = history}));
  SamplingParams params;
  params.presence_penalty = 1.0F;
  params.top_p = 0.9F;
  const std::vector<TokenId> other = {1, 2, 3};
  for (uint64_t position = 0; position < 100; ++position) {
    const SampleContext context{.position = position, .history = other, .output_tokens = 3};
    BOOST_TEST(sampled(used, logits, params, context) == sampled(fresh, logits, params, context));
  }
}

BOOST_AUTO_TEST_CASE(logit_bias_bans_and_forces) {
  Sampler sampler(100, {});
  const auto logits = random_logits(100, 5);
  const TokenId best = sampled(sampler, logits, greedy());
  SamplingParams params;
  params.logit_bias = {{best, -100.0F}};
  for (uint64_t position = 0; position < 500; ++position)
    BOOST_TEST(sampled(sampler, logits, params, {.position = position}) != best);
  params.logit_bias = {{42, 100.0F}};
  for (uint64_t position = 0; position < 500; ++position)
    BOOST_TEST(sampled(sampler, logits, params, {.position = position}) == 42);
}

BOOST_AUTO_TEST_CASE(end_and_stop_tokens_wait_for_min_tokens) {
  Sampler sampler(4, {3});
  SamplingParams params = greedy();
  params.min_tokens = 2;
  params.stop_token_ids = {2};
  const std::vector<float> logits = {0.0F, 1.0F, 2.0F, 3.0F};
  BOOST_TEST(sampled(sampler, logits, params, {.output_tokens = 1}) == 1);
  BOOST_TEST(sampled(sampler, logits, params, {.output_tokens = 2}) == 3);
  params.ignore_eos = true;  // is the scheduler's: the token is still the model's choice
  BOOST_TEST(sampled(sampler, logits, params, {.output_tokens = 2}) == 3);
  params.stop_token_ids = {0, 1, 2};
  BOOST_TEST(fails_internally(sampler, logits, params, {.output_tokens = 1}));
}

BOOST_AUTO_TEST_CASE(one_possible_token_is_always_taken) {
  Sampler sampler(300, {});
  std::vector<float> logits(300, -kInfinity);
  logits[217] = -3e38F;
  SamplingParams params;
  params.top_k = 5;
  params.top_p = 0.5F;
  params.min_p = 1.0F;
  params.logprobs = 5;
  const auto token = sampler.sample(logits, params, {});
  BOOST_REQUIRE(token.ok());
  BOOST_TEST(token.value().token == 217);
  BOOST_TEST(token.value().logprob == 0.0F);
  BOOST_TEST(token.value().top.size() == 1U);
}

BOOST_AUTO_TEST_CASE(damaged_logits_are_an_error_and_no_crash) {
  Sampler sampler(100, {});
  SamplingParams params;
  params.top_k = 3;
  for (const size_t at : {0, 50, 95, 96, 99}) {
    auto logits = random_logits(100, 6);
    logits[at] = kNan;
    const auto token = sampler.sample(logits, params, {});
    BOOST_REQUIRE(!token.ok());
    BOOST_CHECK(token.status().code() == StatusCode::kInternal);
    BOOST_TEST(token.status().message().find("token " + std::to_string(at)) != std::string::npos);
    BOOST_TEST(fails_internally(sampler, logits, greedy()));
    logits[at] = kInfinity;
    BOOST_TEST(fails_internally(sampler, logits, params));
  }
  BOOST_TEST(fails_internally(sampler, std::vector<float>(100, -kInfinity), params));
  BOOST_TEST(fails_internally(sampler, std::vector<float>(100, kNan), params));
}

BOOST_AUTO_TEST_CASE(tokens_outside_the_vocabulary_are_an_error_and_no_index) {
  Sampler sampler(100, {});
  const auto logits = random_logits(100, 7);
  for (const TokenId bad : {-1, 100, 1 << 30}) {
    SamplingParams params;
    params.logit_bias = {{bad, 1.0F}};
    BOOST_TEST(fails_internally(sampler, logits, params));
    params = {};
    params.min_tokens = 1;
    params.stop_token_ids = {bad};
    BOOST_TEST(fails_internally(sampler, logits, params));
    params = {};
    params.presence_penalty = 1.0F;
    const std::vector<TokenId> history = {1, bad};
    BOOST_TEST(fails_internally(sampler, logits, params, {.history = history}));
    BOOST_CHECK(!sampler.score(logits, bad, 3).ok());
  }
  SamplingParams params;
  params.presence_penalty = 1.0F;
  BOOST_TEST(fails_internally(sampler, logits, params, {.prompt_tokens = 1}));
}

BOOST_AUTO_TEST_CASE(extreme_values_stay_finite) {
  Sampler sampler(3, {});
  SamplingParams params;
  const std::vector<TokenId> history = {0, 1, 2};
  const SampleContext context{.history = history};
  for (const float penalty : {1e-38F, 3e38F}) {
    params.repetition_penalty = penalty;
    BOOST_TEST(sampler.sample(std::vector<float>{3e38F, -3e38F, 1.0F}, params, context).ok());
    BOOST_TEST(sampler.sample(std::vector<float>{-1.0F, -2.0F, -3.0F}, params, context).ok());
  }
  params = {};
  params.temperature = 1e-5F;
  params.logprobs = 3;
  const auto token = sampler.sample(std::vector<float>{3e38F, -3e38F, 3e38F}, params, {});
  BOOST_REQUIRE(token.ok());
  BOOST_TEST(token.value().top.back().logprob == kLogprobMin);
}

BOOST_AUTO_TEST_CASE(logprobs_are_those_of_the_raw_logits) {
  Sampler sampler(1003, {0});
  const auto logits = random_logits(1003, 8);
  double sum = 0.0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  SamplingParams params;
  params.logprobs = 20;
  params.temperature = 0.3F;
  params.top_k = 2;
  params.repetition_penalty = 1.5F;
  params.logit_bias = {{5, 50.0F}};
  const std::vector<TokenId> history = {1, 2, 3};
  const auto result = sampler.sample(logits, params, {.history = history});
  BOOST_REQUIRE(result.ok());
  const SampledToken& token = result.value();
  BOOST_TEST(token.token == 5);
  BOOST_TEST(token.logprob == static_cast<double>(logits[5]) - std::log(sum),
             boost::test_tools::tolerance(1e-6));
  BOOST_REQUIRE(token.top.size() == 20U);
  const auto order = reference::filtered(logits, SamplingParams{});
  for (size_t i = 0; i < 20; ++i) {
    BOOST_TEST(token.top[i].token == order[i].token);
    BOOST_TEST(token.top[i].logprob == std::log(order[i].probability),
               boost::test_tools::tolerance(1e-6));
  }
  const auto score = sampler.score(logits, 5, 20);
  BOOST_REQUIRE(score.ok());
  BOOST_CHECK(score.value() == token);
  BOOST_TEST(sampler.score(logits, 9, 0).value().top.empty());
}

BOOST_AUTO_TEST_CASE(impossible_tokens_have_the_lowest_logprob_and_are_no_alternatives) {
  Sampler sampler(5, {});
  const std::vector<float> logits = {-kInfinity, 0.0F, 0.0F, -kInfinity, -1e30F};
  const auto score = sampler.score(logits, 0, 20);
  BOOST_REQUIRE(score.ok());
  BOOST_TEST(score.value().logprob == kLogprobMin);
  BOOST_TEST(score.value().top.size() == 3U);
  BOOST_TEST(score.value().top[0].token == 1);
  BOOST_TEST(score.value().top[1].token == 2);
  BOOST_TEST(score.value().top[2].logprob == kLogprobMin);
}

BOOST_AUTO_TEST_CASE(ties_are_ranked_by_id_in_top_k_and_logprobs) {
  Sampler sampler(50, {});
  const std::vector<float> logits(50, 1.0F);
  SamplingParams params;
  params.top_k = 3;
  params.logprobs = 4;
  for (uint64_t position = 0; position < 100; ++position) {
    const auto token = sampler.sample(logits, params, {.position = position});
    BOOST_TEST(token.value().token < 3);
    for (TokenId i = 0; i < 4; ++i)
      BOOST_TEST(token.value().top[static_cast<size_t>(i)].token == i);
  }
}

BOOST_AUTO_TEST_CASE(filters_that_admit_all_change_nothing) {
  Sampler sampler(200, {});
  const auto logits = random_logits(200, 9);
  SamplingParams plain, wide;
  wide.top_k = 2000;
  wide.top_p = 1.0F;
  SamplingParams off = plain;
  off.top_k = -1;
  for (uint64_t position = 0; position < 200; ++position) {
    const TokenId wanted = sampled(sampler, logits, plain, {.position = position});
    BOOST_TEST(sampled(sampler, logits, wide, {.position = position}) == wanted);
    BOOST_TEST(sampled(sampler, logits, off, {.position = position}) == wanted);
  }
}

// Of 100 tokens, those given.
std::vector<uint32_t> mask_of(const std::vector<TokenId>& tokens) {
  std::vector<uint32_t> mask(4);
  for (const TokenId token : tokens) mask[token / 32] |= uint32_t{1} << (token % 32);
  return mask;
}

BOOST_AUTO_TEST_CASE(only_what_the_mask_allows_is_sampled_whatever_else_is_asked) {
  Sampler sampler(100, {0});
  const std::vector<TokenId> allowed = {1, 31, 32, 70, 99};
  const auto mask = mask_of(allowed);
  SamplingParams params;
  params.logit_bias = {{5, 100.0F}, {70, -100.0F}};
  params.top_k = 3;
  params.top_p = 0.9F;
  for (uint64_t position = 0; position < 300; ++position) {
    params.temperature = position % 2 == 0 ? 0.0F : 1.5F;
    const auto logits = random_logits(100, position);
    const TokenId token = sampled(sampler, logits, params, {.position = position, .allowed = mask});
    BOOST_TEST(std::count(allowed.begin(), allowed.end(), token) == 1);
  }
}

BOOST_AUTO_TEST_CASE(a_mask_that_allows_all_changes_nothing) {
  Sampler sampler(100, {0});
  std::vector<uint32_t> all(4, ~uint32_t{0});
  all.back() = 0xF;
  SamplingParams params;
  for (uint64_t position = 0; position < 100; ++position) {
    const auto logits = random_logits(100, position);
    BOOST_TEST(sampled(sampler, logits, params, {.position = position, .allowed = all}) ==
               sampled(sampler, logits, params, {.position = position}));
  }
}

BOOST_AUTO_TEST_CASE(log_probabilities_are_those_without_the_mask) {
  Sampler sampler(100, {0});
  const auto logits = random_logits(100, 4);
  SamplingParams params = greedy();
  params.logprobs = 5;
  const auto mask = mask_of({17});
  const auto masked = sampler.sample(logits, params, {.allowed = mask});
  const auto free = sampler.sample(logits, params, {});
  const auto scored = sampler.score(logits, 17, 5);
  BOOST_REQUIRE(masked.ok());
  BOOST_TEST(masked->token == 17);
  BOOST_TEST(masked->logprob == scored->logprob);
  BOOST_TEST((masked->top == free->top));
}

BOOST_AUTO_TEST_CASE(end_tokens_are_kept_away_as_long_as_the_mask_has_others) {
  Sampler sampler(100, {0, 3});
  std::vector<float> logits(100, 0.0F);
  logits[0] = 50.0F;
  SamplingParams params = greedy();
  const auto both = mask_of({0, 7});
  const auto end_only = mask_of({0});
  BOOST_TEST(sampled(sampler, logits, params, {.allowed = both}) == 0);
  for (const bool ignore_eos : {false, true}) {
    params.ignore_eos = ignore_eos;
    params.min_tokens = ignore_eos ? 0 : 5;
    BOOST_TEST(sampled(sampler, logits, params, {.allowed = both}) == 7);
    BOOST_TEST(sampled(sampler, logits, params, {.allowed = end_only}) == 0);
  }
  params.min_tokens = 5;
  params.stop_token_ids = {0, 9};
  BOOST_TEST(sampled(sampler, logits, params, {.allowed = end_only}) == 0);
  BOOST_TEST(sampled(sampler, logits, params, {.allowed = mask_of({9})}) == 9);
}

BOOST_AUTO_TEST_CASE(a_mask_that_allows_nothing_is_an_error) {
  Sampler sampler(100, {0});
  const std::vector<uint32_t> none(4);
  BOOST_TEST(fails_internally(sampler, random_logits(100, 1), {}, {.allowed = none}));
}

BOOST_AUTO_TEST_CASE(only_allowed_tokens_are_sampled_also_under_a_mask) {
  Sampler sampler(100, {0});
  SamplingParams params;
  params.allowed_tokens = {3, 31, 99};
  params.logit_bias = {{5, 100.0F}};
  params.top_k = 2;
  const auto mask = mask_of({5, 31, 64});
  for (uint64_t position = 0; position < 300; ++position) {
    params.temperature = position % 2 == 0 ? 0.0F : 1.5F;
    const auto logits = random_logits(100, position);
    const TokenId token = sampled(sampler, logits, params, {.position = position});
    BOOST_TEST(std::count(params.allowed_tokens.begin(), params.allowed_tokens.end(), token) == 1);
    BOOST_TEST(sampled(sampler, logits, params, {.position = position, .allowed = mask}) == 31);
  }
}

BOOST_AUTO_TEST_CASE(the_choice_among_allowed_tokens_is_that_of_a_vocabulary_without_the_others) {
  Sampler sampler(200, {});
  SamplingParams params;
  for (TokenId token = 0; token < 200; token += 3) params.allowed_tokens.push_back(token);
  params.top_p = 0.8F;
  for (uint64_t position = 0; position < 100; ++position) {
    auto logits = random_logits(200, position);
    const TokenId chosen = sampled(sampler, logits, params, {.position = position});
    SamplingParams plain;
    plain.top_p = 0.8F;
    for (size_t i = 0; i < logits.size(); ++i)
      if (i % 3 != 0) logits[i] = -kInfinity;
    BOOST_TEST(chosen == sampled(sampler, logits, plain, {.position = position}));
  }
}

BOOST_AUTO_TEST_CASE(a_bad_word_cannot_be_finished_but_its_parts_may_stand_apart) {
  Sampler sampler(10, {});
  SamplingParams params = greedy();
  params.bad_words = {{7}, {1, 2}, {1, 1, 3}};
  const std::vector<float> logits = {0.0F, 1.0F, 5.0F, 4.0F, 2.0F, 0.0F, 0.0F, 9.0F, 0.0F, 0.0F};
  const auto after = [&](const std::vector<TokenId>& history, uint32_t prompt) {
    return sampled(sampler, logits, params, {.history = history, .prompt_tokens = prompt});
  };
  BOOST_TEST(after({}, 0) == 2);         // 7 is a word by itself
  BOOST_TEST(after({1}, 0) == 3);        // 1 2
  BOOST_TEST(after({1, 1}, 0) == 4);     // 1 2, and 1 1 3
  BOOST_TEST(after({4, 1, 1}, 0) == 4);  // at the end of a longer output
  BOOST_TEST(after({1, 1, 4}, 0) == 2);  // interrupted
  BOOST_TEST(after({1, 1}, 2) == 2);     // of the prompt: does not count
  BOOST_TEST(after({1, 1}, 1) == 3);     // half of it does
}

BOOST_AUTO_TEST_CASE(who_forbids_every_token_is_told_so) {
  Sampler sampler(100, {0});
  const auto logits = random_logits(100, 1);
  SamplingParams params;
  params.allowed_tokens = {0, 8};
  params.bad_words = {{8}};
  params.min_tokens = 2;
  const auto refused = sampler.sample(logits, params, {.output_tokens = 1});
  BOOST_REQUIRE(!refused.ok());
  BOOST_CHECK(refused.status().code() == StatusCode::kInvalidArgument);
  BOOST_TEST(refused.status().param() == "allowed_token_ids");
  BOOST_TEST(sampled(sampler, logits, params, {.output_tokens = 2}) == 0);
  const auto mask = mask_of({5});
  params = {};
  params.bad_words = {{5}};
  const auto masked = sampler.sample(logits, params, {.allowed = mask});
  BOOST_REQUIRE(!masked.ok());
  BOOST_TEST(masked.status().param() == "bad_words");
  for (const TokenId bad : {-1, 100}) {
    params.bad_words = {{bad}};
    BOOST_TEST(fails_internally(sampler, logits, params));
    params = {};
    params.allowed_tokens = {bad};
    BOOST_TEST(fails_internally(sampler, logits, params));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
