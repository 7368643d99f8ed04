#include "actors/gateway/responses/responses_answer.h"

#include <boost/test/unit_test.hpp>

#include "base/clock.h"
#include "tests/unit/actors/gateway/openai/fake_generator.h"
#include "tests/unit/actors/gateway/openai/recording_sink.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;
using Json = nlohmann::json;

// Drives the writer by deltas of the test's own making.
struct Fixture {
  TinyModel model;
  FakeGenerator generator;
  ManualClock clock;
  ResponseStore store;
  EventSink sink;
  RunIdentity identity{"resp_1f", "label", "tiny", 1700000000, 0};
  std::unique_ptr<ResponsesAnswer> answer;
  std::unique_ptr<GenerationRun> run;

  void begin(const std::string& fields = "") {
    auto parsed = parse_responses_body("{\"model\":\"tiny\",\"input\":\"hi\"" + fields + "}",
                                       model.catalogue().rules(), store);
    BOOST_REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
    auto prepared = prepare_request(parsed->body, model.catalogue().at(0), 0);
    BOOST_REQUIRE_MESSAGE(prepared.ok(), prepared.status().message());
    const bool logprobs = parsed->body.sampling.logprobs >= 0;
    answer = std::make_unique<ResponsesAnswer>(std::move(parsed).value(), identity,
                                               prepared->body.stream, logprobs, model.tokenizer(),
                                               clock, store, sink);
    run =
        std::make_unique<GenerationRun>(std::move(prepared).value(), identity, generator, *answer);
  }
  void give(const std::vector<AnswerPart>& parts, std::optional<AnswerEnd> end = {}) {
    answer->on_delta({.index = 0,
                      .first = false,
                      .parts = parts,
                      .prompt = {},
                      .tokens = {},
                      .finish = end,
                      .stop_string = {}},
                     *run);
  }
  void end() {
    answer->on_end(
        {.prompt_tokens = 7, .completion_tokens = 3, .reasoning_tokens = {}, .cached_tokens = 2});
  }
};

AnswerPart text(const char* piece) {
  return {AnswerPartKind::kText, 0, piece, ""};
}

BOOST_FIXTURE_TEST_CASE(a_whole_response_is_completed_and_stored, Fixture) {
  begin();
  give({text("Hello")});
  give({text(" world")}, AnswerEnd::kStop);
  end();
  const Json body = sink.answer();
  BOOST_TEST(body["status"] == "completed");
  BOOST_TEST(body["output"][0]["content"][0]["text"] == "Hello world");
  BOOST_TEST(body["output"][0]["id"] == "msg_1f_0");
  BOOST_TEST(body["usage"]["total_tokens"] == 10);
  BOOST_TEST(body["usage"]["input_tokens_details"]["cached_tokens"] == 2);
  const StoredResponse* stored = store.find("resp_1f");
  BOOST_REQUIRE(stored != nullptr);
  BOOST_TEST(Json::parse(stored->body) == body);
  const Json turns = Json::parse(stored->conversation);
  BOOST_TEST(turns[1] == Json({{"role", "assistant"}, {"content", "Hello world"}}));
  BOOST_TEST(Json::parse(stored->input_items)[0]["content"][0]["text"] == "hi");
}

BOOST_FIXTURE_TEST_CASE(reasoning_text_and_calls_are_items_of_their_own, Fixture) {
  begin(R"(,"stream":true,"store":false)");
  give({{AnswerPartKind::kReasoning, 0, "hm", ""},
        text("ok"),
        {AnswerPartKind::kCallStarted, 0, "f", "call_9"},
        {AnswerPartKind::kCallArguments, 0, "{\"a\"", ""},
        {AnswerPartKind::kCallArguments, 0, ":1}", ""},
        {AnswerPartKind::kCallFinished, 0, "", ""}},
       AnswerEnd::kToolCalls);
  end();
  const std::vector<std::string> expected = {"response.created",
                                             "response.in_progress",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.reasoning_text.delta",
                                             "response.reasoning_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.content_part.added",
                                             "response.output_text.delta",
                                             "response.output_text.done",
                                             "response.content_part.done",
                                             "response.output_item.done",
                                             "response.output_item.added",
                                             "response.function_call_arguments.delta",
                                             "response.function_call_arguments.delta",
                                             "response.function_call_arguments.done",
                                             "response.output_item.done",
                                             "response.completed"};
  BOOST_TEST(sink.names() == expected, boost::test_tools::per_element());
  for (size_t i = 0; i < sink.events.size(); ++i) {
    BOOST_TEST(sink.events[i].json["sequence_number"] == i);
    BOOST_TEST(sink.events[i].json["type"] == sink.events[i].name);
  }
  const Json output = sink.events.back().json["response"]["output"];
  BOOST_TEST(output[0]["type"] == "reasoning");
  BOOST_TEST(output[2]["arguments"] == "{\"a\":1}");
  BOOST_TEST(output[2]["call_id"] == "call_9");
  BOOST_TEST(sink.body.value() == "");
  BOOST_TEST((store.find("resp_1f") == nullptr));
}

BOOST_FIXTURE_TEST_CASE(a_call_that_is_cut_short_is_incomplete, Fixture) {
  begin();
  give({{AnswerPartKind::kCallStarted, 0, "f", "call_9"},
        {AnswerPartKind::kCallArguments, 0, "{\"a", ""}},
       AnswerEnd::kLength);
  end();
  const Json body = sink.answer();
  BOOST_TEST(body["status"] == "incomplete");
  BOOST_TEST(body["incomplete_details"]["reason"] == "max_output_tokens");
  BOOST_TEST(body["output"][0]["status"] == "incomplete");
}

BOOST_FIXTURE_TEST_CASE(an_answer_without_text_has_an_empty_message, Fixture) {
  begin();
  give({}, AnswerEnd::kStop);
  end();
  BOOST_TEST(sink.answer()["output"][0]["content"][0]["text"] == "");
}

BOOST_FIXTURE_TEST_CASE(a_failure_before_the_first_event_is_an_error_and_later_an_event, Fixture) {
  begin(R"(,"stream":true)");
  answer->on_error({StatusCode::kUnavailable, "gone"});
  BOOST_TEST(sink.error.has_value());
  sink = {};
  begin(R"(,"stream":true)");
  give({text("a")});
  answer->on_error({StatusCode::kUnavailable, "gone"});
  BOOST_TEST(sink.events.back().name == "response.failed");
  BOOST_TEST(sink.events.back().json["response"]["error"]["message"] == "gone");
  BOOST_TEST(sink.body.has_value());
}

}  // namespace
}  // namespace troupe
