#include "actors/gateway/anthropic/messages_answer.h"

#include <boost/test/unit_test.hpp>
#include <memory>

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
  EventSink sink;
  RunIdentity identity{"msg_1", "label", "tiny", 1700000000, 0};
  std::unique_ptr<MessagesAnswer> answer;
  std::unique_ptr<GenerationRun> run;

  void begin(bool stream) {
    auto body = parse_chat_body(R"({"model":"tiny","messages":[{"role":"user","content":"hi"}]})",
                                model.catalogue().rules());
    BOOST_REQUIRE(body.ok());
    auto prepared = prepare_request(std::move(body).value(), model.catalogue().at(0), 0);
    BOOST_REQUIRE(prepared.ok());
    answer = std::make_unique<MessagesAnswer>(identity, stream, sink);
    run =
        std::make_unique<GenerationRun>(std::move(prepared).value(), identity, generator, *answer);
  }
  void give(const std::vector<AnswerPart>& parts, std::optional<AnswerEnd> end = {},
            std::string_view stop_string = {}) {
    answer->on_delta({.index = 0,
                      .first = false,
                      .parts = parts,
                      .prompt = {},
                      .tokens = {},
                      .finish = end,
                      .stop_string = stop_string},
                     *run);
  }
  void end() {
    answer->on_end(
        {.prompt_tokens = 7, .completion_tokens = 3, .reasoning_tokens = {}, .cached_tokens = 2});
  }
};

const std::vector<AnswerPart> kEverything = {{AnswerPartKind::kReasoning, 0, "hm", ""},
                                             {AnswerPartKind::kText, 0, "ok", ""},
                                             {AnswerPartKind::kCallStarted, 0, "f", "call_9"},
                                             {AnswerPartKind::kCallArguments, 0, "{\"a\":1}", ""},
                                             {AnswerPartKind::kCallFinished, 0, "", ""}};

BOOST_FIXTURE_TEST_CASE(thoughts_text_and_uses_of_tools_are_blocks, Fixture) {
  begin(false);
  give(kEverything, AnswerEnd::kToolCalls);
  end();
  const Json body = sink.answer();
  BOOST_TEST(body["stop_reason"] == "tool_use");
  BOOST_TEST(body["content"][0] ==
             Json({{"type", "thinking"}, {"thinking", "hm"}, {"signature", ""}}));
  BOOST_TEST(body["content"][1] == Json({{"type", "text"}, {"text", "ok"}}));
  BOOST_TEST(body["content"][2] ==
             Json({{"type", "tool_use"}, {"id", "call_9"}, {"name", "f"}, {"input", {{"a", 1}}}}));
  BOOST_TEST(body["usage"]["input_tokens"] == 5);
  BOOST_TEST(body["usage"]["cache_read_input_tokens"] == 2);
}

BOOST_FIXTURE_TEST_CASE(the_events_of_a_stream_tell_the_same, Fixture) {
  begin(true);
  give(kEverything, AnswerEnd::kToolCalls);
  end();
  const std::vector<std::string> block = {"content_block_start", "content_block_delta",
                                          "content_block_stop"};
  std::vector<std::string> expected = {"message_start"};
  for (int i = 0; i < 3; ++i) expected.insert(expected.end(), block.begin(), block.end());
  expected.insert(expected.end(), {"message_delta", "message_stop"});
  BOOST_TEST(sink.names() == expected, boost::test_tools::per_element());
  BOOST_TEST(sink.events[1].json["content_block"]["type"] == "thinking");
  BOOST_TEST(sink.events[8].json["delta"]["partial_json"] == "{\"a\":1}");
  BOOST_TEST(sink.events[8].json["index"] == 2);
  BOOST_TEST(sink.events[10].json["delta"]["stop_reason"] == "tool_use");
}

BOOST_FIXTURE_TEST_CASE(ends_have_their_reasons, Fixture) {
  const auto reason = [&](AnswerEnd how, std::string_view stop) {
    sink.body.reset();
    begin(false);
    give({{AnswerPartKind::kText, 0, "a", ""}}, how, stop);
    end();
    return sink.answer()["stop_reason"].get<std::string>();
  };
  BOOST_TEST(reason(AnswerEnd::kStop, "") == "end_turn");
  BOOST_TEST(reason(AnswerEnd::kLength, "") == "max_tokens");
  BOOST_TEST(reason(AnswerEnd::kStop, "\n\"") == "stop_sequence");
  BOOST_TEST(sink.answer()["stop_sequence"] == "\n\"");
}

BOOST_FIXTURE_TEST_CASE(a_call_that_is_cut_short_has_an_empty_input, Fixture) {
  begin(false);
  give({{AnswerPartKind::kCallStarted, 0, "f", "call_9"},
        {AnswerPartKind::kCallArguments, 0, "{\"a", ""}},
       AnswerEnd::kLength);
  end();
  BOOST_TEST(sink.answer()["content"][0]["input"] == Json::object());
}

}  // namespace
}  // namespace troupe
