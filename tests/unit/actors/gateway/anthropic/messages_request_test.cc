#include "actors/gateway/anthropic/messages_request.h"

#include <boost/test/unit_test.hpp>

#include "actors/gateway/anthropic/anthropic_error.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;

struct Fixture {
  TinyModel model;

  Result<MessagesRequest> parse(const std::string& fields) {
    return parse_messages_body("{\"model\":\"tiny\",\"max_tokens\":5," + fields + "}",
                               model.catalogue().rules());
  }
  void refused(const std::string& fields, const std::string& param, StatusCode code) {
    const auto parsed = parse(fields);
    BOOST_REQUIRE(!parsed.ok());
    BOOST_TEST(parsed.status().param() == param, fields << ": " << parsed.status().message());
    BOOST_TEST((parsed.status().code() == code), fields << ": " << parsed.status().message());
  }
};

constexpr const char* kHi = R"("messages":[{"role":"user","content":"hi"}])";

BOOST_FIXTURE_TEST_CASE(system_and_blocks_become_a_chat, Fixture) {
  const auto parsed =
      parse(R"("system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}],)"
            R"("messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],)"
            R"("stop_sequences":["x"],"top_k":3,"metadata":{"user_id":"u"})");
  BOOST_REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  BOOST_REQUIRE(parsed->body.messages.size() == 2U);
  BOOST_TEST(parsed->body.messages[0]["role"] == "system");
  BOOST_TEST(parsed->body.stops == std::vector<std::string>{"x"}, boost::test_tools::per_element());
  BOOST_TEST(parsed->body.sampling.top_k == 3);
  BOOST_TEST(parsed->body.max_tokens.value() == 5U);
}

BOOST_FIXTURE_TEST_CASE(uses_and_results_of_tools_become_calls_and_tool_messages, Fixture) {
  const auto parsed =
      parse(R"("messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[)"
            R"({"type":"thinking","thinking":"hm","signature":"s"},{"type":"text","text":"so"},)"
            R"({"type":"tool_use","id":"t1","name":"f","input":{"a":1}}]},{"role":"user",)"
            R"("content":[{"type":"tool_result","tool_use_id":"t1","content":"42"},)"
            R"({"type":"text","text":"go on"}]}])");
  BOOST_REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  const nlohmann::ordered_json& messages = parsed->body.messages;
  BOOST_REQUIRE(messages.size() == 4U);
  BOOST_TEST(messages[1]["tool_calls"][0]["id"] == "t1");
  BOOST_TEST(messages[2]["role"] == "tool");
  BOOST_TEST(messages[2]["tool_call_id"] == "t1");
  BOOST_TEST(messages[3]["role"] == "user");
}

BOOST_FIXTURE_TEST_CASE(an_assistants_last_message_is_continued, Fixture) {
  const auto parsed =
      parse(R"("messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"He"}])");
  BOOST_REQUIRE_MESSAGE(parsed.ok(), parsed.status().message());
  BOOST_TEST(parsed->body.chat.continue_final_message);
  BOOST_TEST(!parsed->body.chat.add_generation_prompt);
}

BOOST_FIXTURE_TEST_CASE(faults_are_named_as_the_client_wrote_them, Fixture) {
  using enum StatusCode;
  const std::string hi = kHi;
  refused(R"("messages":[])", "messages", kInvalidArgument);
  refused(R"("messages":[{"role":"system","content":"a"}])", "messages[0].role", kInvalidArgument);
  refused(R"("messages":[{"role":"user","content":[{"type":"image"}]}])",
          "messages[0].content[0].type", kUnsupported);
  refused(R"("messages":[{"role":"user","content":[{"type":"text","text":"a"},)"
          R"({"type":"tool_result","tool_use_id":"t","content":"b"}]}])",
          "messages[0].content[1]", kInvalidArgument);
  refused(R"("messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f",)"
          R"("input":"x"}]}])",
          "messages[0].content[0].input", kInvalidArgument);
  refused(hi + R"(,"stop_sequences":["a",""])", "stop_sequences[1]", kInvalidArgument);
  refused(hi + R"(,"thinking":{"type":"enabled","budget_tokens":9})", "thinking.type",
          kUnsupported);
  refused(hi + R"(,"tools":[{"name":"f"}])", "tools[0].input_schema", kInvalidArgument);
  refused(hi + R"(,"tools":[{"type":"bash_20250124","name":"bash"}])", "tools[0].type",
          kUnsupported);
  refused(hi + R"(,"tool_choice":{"type":"some"})", "tool_choice", kInvalidArgument);
  refused(hi + R"(,"output_config":{"effort":"lwo"})", "output_config.effort", kInvalidArgument);
  const auto missing =
      parse_messages_body("{\"model\":\"tiny\"," + hi + "}", model.catalogue().rules());
  BOOST_TEST(missing.status().param() == "max_tokens");
  const auto odd = parse_count_body(R"({"model":"tiny","max_tokens":"many",)" + hi + "}",
                                    model.catalogue().rules());
  BOOST_TEST(odd.status().param() == "max_tokens");
  BOOST_TEST(parse_count_body("{\"model\":\"tiny\"," + hi + "}", model.catalogue().rules()).ok());
}

BOOST_AUTO_TEST_CASE(errors_have_anthropics_types) {
  const auto type = [](uint32_t http_status) {
    const std::string text = format_anthropic_error({http_status, "", "", "m", "", 0}, "req-1");
    const auto json = nlohmann::json::parse(text);
    BOOST_TEST(json["type"] == "error");
    BOOST_TEST(json["request_id"] == "req-1");
    return json["error"]["type"].get<std::string>();
  };
  BOOST_TEST(type(400) == "invalid_request_error");
  BOOST_TEST(type(401) == "authentication_error");
  BOOST_TEST(type(404) == "not_found_error");
  BOOST_TEST(type(405) == "invalid_request_error");
  BOOST_TEST(type(413) == "request_too_large");
  BOOST_TEST(type(429) == "rate_limit_error");
  BOOST_TEST(type(500) == "api_error");
  BOOST_TEST(type(503) == "overloaded_error");
}

}  // namespace
}  // namespace troupe
