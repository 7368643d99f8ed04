#include "actors/gateway/responses/responses_request.h"

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;

struct Fixture {
  TinyModel model;
  ResponseStore store;

  Result<ResponsesRequest> parse(const std::string& fields) {
    return parse_responses_body("{\"model\":\"tiny\"," + fields + "}", model.catalogue().rules(),
                                store);
  }
  void refused(const std::string& fields, const std::string& param, StatusCode code) {
    const auto parsed = parse(fields);
    BOOST_REQUIRE(!parsed.ok());
    BOOST_TEST(parsed.status().param() == param, fields << ": " << parsed.status().message());
    BOOST_TEST((parsed.status().code() == code), fields << ": " << parsed.status().message());
  }
};

BOOST_FIXTURE_TEST_CASE(instructions_and_items_become_a_chat, Fixture) {
  const auto parsed = parse(
      R"("instructions":"be brief","input":[{"role":"user","content":[{"type":"input_text",)"
      R"("text":"hi"}]},{"type":"message","role":"assistant","content":[{"type":"output_text",)"
      R"("text":"hello","annotations":[]}]},{"role":"user","content":"more"}],)"
      R"("max_output_tokens":5,"temperature":0.5,"store":false)");
  BOOST_REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  const nlohmann::ordered_json& messages = parsed->body.messages;
  BOOST_REQUIRE(messages.size() == 4U);
  BOOST_TEST(messages[0]["role"] == "system");
  BOOST_TEST(messages[3]["content"] == "more");
  BOOST_TEST(parsed->body.max_tokens.value() == 5U);
  BOOST_TEST(parsed->body.sampling.temperature == 0.5F);
  BOOST_TEST(parsed->conversation.is_null());
}

BOOST_FIXTURE_TEST_CASE(earlier_turns_come_from_the_store_without_their_instructions, Fixture) {
  store.put("resp_1",
            {"{}", "[]", R"([{"role":"user","content":"a"},{"role":"assistant","content":"b"}])"});
  const auto parsed = parse(R"("previous_response_id":"resp_1","instructions":"i","input":"c")");
  BOOST_REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  BOOST_REQUIRE(parsed->body.messages.size() == 4U);
  BOOST_TEST(parsed->body.messages[1]["content"] == "a");
  BOOST_TEST(parsed->conversation.size() == 3U);
  refused(R"("previous_response_id":"resp_2","input":"c")", "previous_response_id",
          StatusCode::kNotFound);
}

BOOST_FIXTURE_TEST_CASE(faults_of_the_chat_are_named_as_the_client_wrote_them, Fixture) {
  using enum StatusCode;
  refused(R"("input":"a","max_output_tokens":0)", "max_output_tokens", kInvalidArgument);
  refused(R"("instructions":"i","input":[{"role":"robot","content":"a"}])", "input[0].role",
          kInvalidArgument);
  refused(R"("input":"a","top_logprobs":21)", "top_logprobs", kInvalidArgument);
  refused(R"("input":"a","text":{"verbosity":"low"})", "text.verbosity", kUnsupported);
  refused(R"("input":"a","include":["file_search_call.results"])", "include[0]", kUnsupported);
  refused(R"("input":"a","background":true)", "background", kUnsupported);
  refused(R"("input":"a","tools":[{"type":"web_search"}])", "tools[0].type", kUnsupported);
  refused(R"("input":"a","metadata":{"k":1})", "metadata", kInvalidArgument);
  refused(R"("input":[{"type":"function_call","name":"f","arguments":"{}"}])", "input[0].call_id",
          kInvalidArgument);
  refused(R"("input":[{"type":"item_reference","id":"x"}])", "input[0].type", kUnsupported);
  refused(R"("input":[{"type":"reasoning","content":"x"}])", "input[0].content", kInvalidArgument);
  refused(R"("input":[])", "input", kInvalidArgument);
  refused(R"("input":[null])", "input[0]", kInvalidArgument);
}

}  // namespace
}  // namespace troupe
