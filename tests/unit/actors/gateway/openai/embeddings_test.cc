#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "actors/gateway/openai/embeddings_answer.h"
#include "actors/gateway/openai/model_catalogue.h"
#include "actors/gateway/openai/request_limits.h"
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
  std::unique_ptr<EmbeddingsAnswer> answer;

  Status begin(const std::string& fields) {
    auto body =
        parse_embeddings_body("{\"model\":\"tiny\"," + fields + "}", model.catalogue().rules());
    if (!body.ok()) return body.status();
    auto inputs = encode_inputs(body.value(), model.catalogue().at(0));
    if (!inputs.ok()) return inputs.status();
    answer = std::make_unique<EmbeddingsAnswer>(std::move(body).value(), std::move(inputs).value(),
                                                "label", model.served(), generator, sink);
    return answer->start();
  }
  void refused(const std::string& fields, const std::string& param) {
    const Status status = begin(fields);
    BOOST_TEST(!status.ok(), fields);
    BOOST_TEST(status.param() == param, fields << ": " << status.message());
  }
  void give(uint64_t id, const std::vector<float>& values) {
    generator.embedding(id, values);
    generator.finish(id, FinishReason::kLength);
  }
};

BOOST_FIXTURE_TEST_CASE(vectors_stand_in_the_order_of_the_inputs_however_they_end, Fixture) {
  BOOST_TEST(begin(R"("input":["ab","c"])").ok());
  BOOST_TEST(generator.entry(1).request.choices[0].max_tokens == 0U);
  BOOST_TEST((generator.entry(1).request.choices[0].pooling == Pooling::kMean));
  give(2, {0.0F, 2.0F});
  BOOST_TEST(!sink.body);
  give(1, {3.0F, 4.0F});
  const nlohmann::json body = sink.answer();
  BOOST_TEST(body["data"][0]["embedding"][0].get<float>() == 0.6F);
  BOOST_TEST(body["data"][0]["embedding"][1].get<float>() == 0.8F);
  BOOST_TEST(body["data"][1]["embedding"][1].get<float>() == 1.0F);
  BOOST_TEST(body["usage"]["prompt_tokens"] == 3);
}

BOOST_FIXTURE_TEST_CASE(a_large_batch_goes_a_few_at_a_time_and_waits_for_a_full_queue, Fixture) {
  std::string inputs;
  for (int i = 0; i < 200; ++i) inputs += i == 0 ? "[1]" : ",[1]";
  BOOST_TEST(begin("\"input\":[" + inputs + "]").ok());
  BOOST_TEST(generator.running() == kPromptsAtOnce);
  generator.reject_with = {StatusCode::kResourceExhausted, "full"};
  generator.reject_after = 0;
  give(1, {1.0F});
  BOOST_TEST(generator.running() == kPromptsAtOnce - 1);
  BOOST_TEST(!sink.error.has_value());
  generator.reject_with = {};
  for (uint64_t id = 2; id <= 200; ++id) give(id, {1.0F});
  BOOST_TEST(sink.answer()["data"].size() == 200U);
}

BOOST_FIXTURE_TEST_CASE(a_failure_names_its_input_and_cancels_the_others, Fixture) {
  BOOST_TEST(begin(R"("input":["a","b","c"])").ok());
  generator.fail(2, {StatusCode::kUnavailable, "the worker is gone"});
  BOOST_REQUIRE(sink.error.has_value());
  BOOST_TEST(sink.error->param() == "input[1]");
  BOOST_TEST(generator.running() == 0U);
}

BOOST_FIXTURE_TEST_CASE(destroying_an_answer_cancels_what_runs, Fixture) {
  BOOST_TEST(begin(R"("input":["a","b"])").ok());
  answer.reset();
  BOOST_TEST(generator.running() == 0U);
}

BOOST_FIXTURE_TEST_CASE(faults_are_named_by_their_place, Fixture) {
  refused(R"("input":"")", "input");
  refused(R"("input":[])", "input");
  refused(R"("input":["a",""])", "input[1]");
  refused(R"("input":["a",7])", "input[1]");
  refused(R"("input":[[1],[]])", "input[1]");
  refused(R"("input":[1,262])", "input[1]");
  refused(R"("input":"a","pooling":"max")", "pooling");
  refused(R"("input":"a","encoding_format":"f32")", "encoding_format");
  refused(R"("input":"a","truncate_prompt_tokens":0)", "truncate_prompt_tokens");
  refused(R"("input":"a","messages":[1])", "messages");
  refused(R"("input":"a","priority":1)", "priority");
  std::string tokens = "1";
  for (uint32_t i = 0; i < kTinyContext; ++i) tokens += ",1";
  refused("\"input\":[[1],[" + tokens + "]]", "input[1]");
  BOOST_TEST(begin("\"input\":[" + tokens + "],\"truncate_prompt_tokens\":-1").ok());
  BOOST_TEST(generator.entry(1).request.prompt.size() == kTinyContext);
}

BOOST_AUTO_TEST_CASE(vectors_are_cut_and_get_the_length_one) {
  std::vector<float> values = {3.0F, 4.0F, 12.0F};
  finish_embedding(values, 2, true);
  BOOST_TEST(values == (std::vector<float>{0.6F, 0.8F}), boost::test_tools::per_element());
  std::vector<float> zeros(3, 0.0F);
  finish_embedding(zeros, 0, true);
  BOOST_TEST(zeros == std::vector<float>(3, 0.0F), boost::test_tools::per_element());
  std::vector<float> plain = {3.0F, 4.0F};
  finish_embedding(plain, 0, false);
  BOOST_TEST(plain[1] == 4.0F);
}

BOOST_AUTO_TEST_CASE(base64_is_that_of_rfc_4648_for_every_rest) {
  BOOST_TEST(base64_floats({}) == "");
  BOOST_TEST(base64_floats({1.0F}) == "AACAPw==");             // 00 00 80 3f
  BOOST_TEST(base64_floats({1.0F, -2.0F}) == "AACAPwAAAMA=");  // and 00 00 00 c0
  BOOST_TEST(base64_floats({1.0F, -2.0F, 0.0F}) == "AACAPwAAAMAAAAAA");
}

}  // namespace
}  // namespace troupe
