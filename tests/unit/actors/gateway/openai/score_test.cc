#include <boost/test/unit_test.hpp>
#include <memory>

#include "actors/gateway/openai/model_catalogue.h"
#include "actors/gateway/openai/score_answer.h"
#include "tests/unit/actors/gateway/openai/fake_generator.h"
#include "tests/unit/actors/gateway/openai/recording_sink.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;

struct Fixture {
  TinyModel model;
  FakeGenerator generator;
  EventSink sink;
  std::unique_ptr<ScoreAnswer> answer;

  Status begin(const std::string& fields) {
    auto body = parse_score_body("{\"model\":\"tiny\"," + fields + "}", model.catalogue().rules());
    if (!body.ok()) return body.status();
    auto tokens = encode_score(body.value(), model.catalogue().at(0));
    if (!tokens.ok()) return tokens.status();
    answer = std::make_unique<ScoreAnswer>(body.value(), std::move(tokens).value(),
                                           RunIdentity{"score-1", "label", "tiny", 17, 0},
                                           model.served(), generator, sink);
    return answer->start();
  }
};

BOOST_FIXTURE_TEST_CASE(only_tokens_of_the_continuation_are_scored_and_summed, Fixture) {
  BOOST_TEST(begin(R"("prompt":"abc","continuations":["de",[258]])").ok());
  const SamplingParams& params = generator.entry(1).request.choices[0];
  BOOST_TEST(params.score_from == 3U);
  BOOST_TEST(params.max_tokens == 0U);
  BOOST_TEST(generator.entry(1).request.prompt.size() == 5U);
  generator.scores(1, {{'d', -0.5F, {{'d', -0.5F}}}, {'e', -1.0F, {{'x', -0.25F}}}});
  generator.finish(1, FinishReason::kLength, 0, 2);
  generator.scores(2, {{kHello, -2.0F, {{kHello, -2.0F}}}});
  generator.finish(2, FinishReason::kLength, 0, 3);
  const nlohmann::json body = sink.answer();
  const nlohmann::json& first = body["data"][0];
  BOOST_TEST(first["logprob"] == -1.5);
  BOOST_TEST(first["token_count"] == 2);
  BOOST_TEST(first["is_greedy"] == false);
  BOOST_TEST(first["tokens"] == nlohmann::json({"d", "e"}));
  BOOST_TEST(body["data"][1]["is_greedy"] == true);
  BOOST_TEST(body["data"][1]["token_ids"] == nlohmann::json::array({258}));
  BOOST_TEST(body["usage"]["prompt_tokens"] == 6);
  BOOST_TEST(body["usage"]["prompt_tokens_details"]["cached_tokens"] == 2);
}

BOOST_FIXTURE_TEST_CASE(a_score_too_few_is_an_error_and_no_answer, Fixture) {
  BOOST_TEST(begin(R"("prompt":"abc","continuations":["de"])").ok());
  generator.scores(1, {{'d', -0.5F, {}}});
  generator.finish(1, FinishReason::kLength);
  BOOST_REQUIRE(sink.error.has_value());
  BOOST_TEST((sink.error->code() == StatusCode::kInternal));
}

BOOST_FIXTURE_TEST_CASE(faults_of_a_score_are_named_by_their_place, Fixture) {
  const auto refused = [&](const std::string& fields, const std::string& param) {
    const Status status = begin(fields);
    BOOST_TEST(!status.ok(), fields);
    BOOST_TEST(status.param() == param, fields << ": " << status.message());
  };
  refused(R"("continuations":["a"])", "prompt");
  refused(R"("prompt":"a")", "continuations");
  refused(R"("prompt":"a","continuations":"b")", "continuations");
  refused(R"("prompt":"a","continuations":["b",[]])", "continuations[1]");
  refused(R"("prompt":"a","continuations":["b"],"items":["c"])", "items");
  refused("\"prompt\":\"" + std::string(150, 'a') + "\",\"continuations\":[\"a\",\"" +
              std::string(60, 'b') + "\"]",
          "continuations[1]");
}

}  // namespace
}  // namespace troupe
