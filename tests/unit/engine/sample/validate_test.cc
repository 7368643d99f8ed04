#include "engine/sample/validate.h"

#include <boost/test/unit_test.hpp>
#include <limits>
#include <string>

namespace troupe {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SamplingParams valid_params() {
  SamplingParams params;
  params.max_tokens = 16;
  return params;
}

// The parameter that is refused after `change`, or "" when all is well.
template <class Change>
std::string refused(Change change) {
  SamplingParams params = valid_params();
  change(params);
  const SamplingLimits limits{.vocab_size = 1000, .context_tokens = 100};
  const Status status = validate(params, limits);
  if (status.ok()) return "";
  BOOST_CHECK(status.code() == StatusCode::kInvalidArgument);
  BOOST_TEST(status.message().find(status.param()) == 0U);
  return status.param();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(validate_sampling)

BOOST_AUTO_TEST_CASE(values_within_their_ranges_pass) {
  BOOST_TEST(refused([](auto&) {}).empty());
  for (const float value : {0.0F, 1e-38F, 1e-5F, 2.0F})
    BOOST_TEST(refused([&](auto& p) { p.temperature = value; }).empty());
  for (const int32_t value : {-1, 0, 1, 10'000})
    BOOST_TEST(refused([&](auto& p) { p.top_k = value; }).empty());
  for (const float value : {1e-9F, 1.0F})
    BOOST_TEST(refused([&](auto& p) { p.top_p = value; }).empty());
  for (const float value : {-2.0F, 2.0F})
    BOOST_TEST(refused([&](auto& p) { p.presence_penalty = p.frequency_penalty = value; }).empty());
  BOOST_TEST(refused([](auto& p) { p.logit_bias = {{0, -100.0F}, {999, 100.0F}}; }).empty());
  BOOST_TEST(refused([](auto& p) { p.logprobs = 20, p.prompt_logprobs = 0; }).empty());
  BOOST_TEST(refused([](auto& p) { p.max_tokens = 0, p.prompt_logprobs = 1; }).empty());
  BOOST_TEST(refused([](auto& p) { p.max_tokens = p.min_tokens = 100; }).empty());
  BOOST_TEST(refused([](auto& p) { p.allowed_tokens = {0, 999}; }).empty());
  BOOST_TEST(refused([](auto& p) { p.bad_words.assign(512, std::vector<TokenId>(8, 1)); }).empty());
}

BOOST_AUTO_TEST_CASE(values_outside_are_refused_by_name) {
  for (const float value : {-0.1F, 2.5F, kInfinity, kNan}) {
    BOOST_TEST(refused([&](auto& p) { p.temperature = value; }) == "temperature");
    BOOST_TEST(refused([&](auto& p) { p.min_p = value; }) == "min_p");
    BOOST_TEST(refused([&](auto& p) { p.top_p = value; }) == "top_p");
  }
  BOOST_TEST(refused([](auto& p) { p.top_p = 0.0F; }) == "top_p");
  BOOST_TEST(refused([](auto& p) { p.top_k = -2; }) == "top_k");
  for (const float value : {0.0F, -1.0F, kInfinity, kNan})
    BOOST_TEST(refused([&](auto& p) { p.repetition_penalty = value; }) == "repetition_penalty");
  for (const float value : {-2.1F, 2.1F, kNan}) {
    BOOST_TEST(refused([&](auto& p) { p.presence_penalty = value; }) == "presence_penalty");
    BOOST_TEST(refused([&](auto& p) { p.frequency_penalty = value; }) == "frequency_penalty");
  }
  for (const TokenId token : {-1, 1000, 99'999'999}) {
    BOOST_TEST(refused([&](auto& p) { p.logit_bias = {{token, 5.0F}}; }) == "logit_bias");
    BOOST_TEST(refused([&](auto& p) { p.stop_token_ids = {token}; }) == "stop_token_ids");
    BOOST_TEST(refused([&](auto& p) { p.allowed_tokens = {token}; }) == "allowed_token_ids");
    BOOST_TEST(refused([&](auto& p) { p.bad_words = {{1}, {1, token}}; }) == "bad_words");
  }
  for (const float bias : {101.0F, -100.5F, kNan})
    BOOST_TEST(refused([&](auto& p) { p.logit_bias = {{5, bias}}; }) == "logit_bias");
  BOOST_TEST(refused([](auto& p) { p.logit_bias = {{5, 1.0F}, {5, 2.0F}}; }) == "logit_bias");
  BOOST_TEST(refused([](auto& p) { p.stop_token_ids.assign(1025, 1); }) == "stop_token_ids");
  for (const auto& tokens : {std::vector<TokenId>{5, 5}, std::vector<TokenId>{6, 5}})
    BOOST_TEST(refused([&](auto& p) { p.allowed_tokens = tokens; }) == "allowed_token_ids");
  BOOST_TEST(refused([](auto& p) { p.bad_words = {{}}; }) == "bad_words");
  BOOST_TEST(refused([](auto& p) { p.bad_words.assign(513, {1}); }) == "bad_words");
  BOOST_TEST(refused([](auto& p) { p.bad_words = {std::vector<TokenId>(4097, 1)}; }) ==
             "bad_words");
  BOOST_TEST(refused([](auto& p) { p.max_tokens = 0; }) == "max_tokens");
  BOOST_TEST(refused([](auto& p) { p.max_tokens = 101; }) == "max_tokens");
  BOOST_TEST(refused([](auto& p) { p.min_tokens = 17; }) == "min_tokens");
  for (const int32_t count : {-2, 21}) {
    BOOST_TEST(refused([&](auto& p) { p.logprobs = count; }) == "logprobs");
    BOOST_TEST(refused([&](auto& p) { p.prompt_logprobs = count; }) == "prompt_logprobs");
  }
}

BOOST_AUTO_TEST_CASE(messages_name_the_value_and_the_range) {
  SamplingParams params = valid_params();
  params.temperature = 2.5F;
  const SamplingLimits limits{.vocab_size = 1000, .context_tokens = 100};
  BOOST_TEST(validate(params, limits).message() == "temperature is 2.5; it must be from 0 to 2");
  params = valid_params();
  params.logit_bias = {{1000, 1.0F}};
  BOOST_TEST(validate(params, limits).message() ==
             "logit_bias names token 1000; token ids are 0 to 999");
  params = valid_params();
  params.logprobs = 21;
  BOOST_TEST(
      validate(params, {.vocab_size = 1000, .context_tokens = 100, .logprobs_name = "top_logprobs"})
          .param() == "top_logprobs");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
