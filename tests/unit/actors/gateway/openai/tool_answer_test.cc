// Answers with calls and reasoning, from tokens to JSON.

#include <boost/test/unit_test.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "actors/gateway/openai/generation_run.h"
#include "actors/gateway/openai/json_answer.h"
#include "tests/unit/actors/gateway/openai/fake_generator.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;
using Json = nlohmann::json;

struct Sink final : JsonSink {
  std::vector<Json> events;
  std::optional<std::string> body;

  void on_event(std::string_view json) override { events.push_back(Json::parse(json)); }
  void on_end(std::string answer) override { body = std::move(answer); }
  void on_error(const Status& status) override { BOOST_ERROR(status.message()); }
};

const std::string kPlain =
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ "
    "m.content }}{% endfor %}>";
const std::string kThinks = kPlain + "<think>\n";
const std::string kTools =
    R"(,"tools":[{"type":"function","function":{"name":"f"}},
                 {"type":"function","function":{"name":"g"}}])";

struct Rig {
  explicit Rig(const std::string& chat_template = kPlain) : model(chat_template) {}

  void begin(const std::string& fields) {
    auto body = parse_chat_body(
        R"({"model":"tiny","messages":[{"role":"user","content":"hi"}],"max_tokens":150)" + fields +
            "}",
        model.catalogue().rules());
    BOOST_REQUIRE_MESSAGE(body.ok(), body.status().message());
    auto prepared = prepare_request(std::move(body).value(), model.catalogue().at(0), 0);
    BOOST_REQUIRE_MESSAGE(prepared.ok(), prepared.status().message());
    const RunIdentity identity{"chatcmpl-7", "label", "tiny", 1700000000, 99};
    answer = std::make_unique<JsonAnswer>(prepared->body, identity, model.tokenizer(), sink);
    run =
        std::make_unique<GenerationRun>(std::move(prepared).value(), identity, generator, *answer);
    BOOST_REQUIRE(run->start().ok());
  }
  // One token per byte.
  void generate(const std::string& text, FinishReason reason) {
    for (const TokenId token : byte_tokens(text)) {
      if (run->ended()) return;
      generator.token(1, token);
    }
    if (!run->ended()) generator.finish(1, reason);
  }
  [[nodiscard]] Json whole() const { return Json::parse(sink.body.value()); }
  [[nodiscard]] Json choice() const { return whole()["choices"][0]; }

  TinyModel model;
  FakeGenerator generator;
  Sink sink;
  std::unique_ptr<JsonAnswer> answer;
  std::unique_ptr<GenerationRun> run;
};

// What a client makes of the events of one choice.
Json assembled(const std::vector<Json>& events) {
  Json message = {{"content", ""}, {"reasoning_content", ""}, {"tool_calls", Json::array()}};
  Json finish;
  for (const Json& event : events) {
    if (event["choices"].empty()) continue;
    const Json& choice = event["choices"][0];
    const Json& delta = choice["delta"];
    for (const char* name : {"content", "reasoning_content"}) {
      message[name] = message[name].get<std::string>() + delta.value(name, "");
    }
    for (const Json& call : delta.value("tool_calls", Json::array())) {
      Json& calls = message["tool_calls"];
      if (call.contains("id")) calls.push_back({{"id", call["id"]}, {"arguments", ""}});
      BOOST_REQUIRE(call["index"] == calls.size() - 1);
      const Json& function = call["function"];
      if (call.contains("id")) {
        BOOST_TEST(call["type"] == "function");
        calls.back()["name"] = function["name"];
      }
      calls.back()["arguments"] =
          calls.back()["arguments"].get<std::string>() + function["arguments"].get<std::string>();
    }
    if (!choice["finish_reason"].is_null()) finish = choice["finish_reason"];
  }
  message["finish_reason"] = finish;
  return message;
}

const std::string kCall =
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1]}}\n</tool_call>";

BOOST_AUTO_TEST_CASE(calls_are_in_the_message_and_finish_it) {
  Rig rig;
  rig.begin(kTools);
  rig.generate("Wait. " + kCall + "\n" + kCall, FinishReason::kStop);
  const Json choice = rig.choice();
  BOOST_TEST(choice["finish_reason"] == "tool_calls");
  BOOST_TEST(choice["message"]["content"] == "Wait.");
  const Json& calls = choice["message"]["tool_calls"];
  BOOST_REQUIRE(calls.size() == 2U);
  BOOST_TEST(calls[1] == (Json{{"id", "call_7_0_1"},
                               {"type", "function"},
                               {"function", {{"name", "f"}, {"arguments", "{\"a\": [1]}"}}}}));
}

BOOST_AUTO_TEST_CASE(the_stream_of_calls_is_the_same_answer) {
  for (const std::string& text :
       {kCall, "Hm " + kCall, kCall + kCall, std::string("no call"),
        std::string("<tool_call>oops</tool_call>"), kCall.substr(0, kCall.size() / 2)}) {
    for (const FinishReason reason : {FinishReason::kStop, FinishReason::kLength}) {
      Rig whole, streamed;
      whole.begin(kTools);
      whole.generate(text, reason);
      streamed.begin(kTools + R"(,"stream":true)");
      streamed.generate(text, reason);
      const Json message = whole.choice()["message"];
      const Json got = assembled(streamed.sink.events);
      BOOST_TEST(got["finish_reason"] == whole.choice()["finish_reason"], text);
      BOOST_TEST(got["content"] == (message["content"].is_null() ? Json("") : message["content"]));
      const Json calls = message.value("tool_calls", Json::array());
      BOOST_REQUIRE(got["tool_calls"].size() == calls.size());
      for (size_t i = 0; i < calls.size(); ++i) {
        BOOST_TEST(got["tool_calls"][i]["id"] == calls[i]["id"]);
        BOOST_TEST(got["tool_calls"][i]["name"] == calls[i]["function"]["name"]);
        BOOST_TEST(got["tool_calls"][i]["arguments"] == calls[i]["function"]["arguments"]);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_call_that_is_cut_is_no_finished_one) {
  Rig rig;
  rig.begin(kTools + R"(,"tool_choice":"required")");
  rig.generate("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [", FinishReason::kLength);
  BOOST_TEST(rig.choice()["finish_reason"] == "length");
  BOOST_TEST(rig.choice()["message"]["content"].is_null());
  BOOST_TEST(rig.choice()["message"]["tool_calls"][0]["function"]["arguments"] == "{\"a\": [");

  Rig early;
  early.begin(kTools + R"(,"tool_choice":"required")");
  early.generate("<tool_", FinishReason::kLength);
  BOOST_TEST(early.choice()["finish_reason"] == "length");
  BOOST_TEST(!early.choice()["message"].contains("tool_calls"));
  BOOST_TEST(early.choice()["message"]["content"] == "");
}

BOOST_AUTO_TEST_CASE(a_whole_call_that_is_cut_behind_it_has_the_length_for_a_reason) {
  Rig rig;
  rig.begin(kTools);
  rig.generate(kCall + "\n<tool_ca", FinishReason::kLength);
  BOOST_TEST(rig.choice()["finish_reason"] == "length");
  BOOST_TEST(rig.choice()["message"]["tool_calls"].size() == 1U);
}

BOOST_AUTO_TEST_CASE(none_gives_no_call) {
  Rig rig;
  rig.begin(kTools + R"(,"tool_choice":"none")");
  rig.generate("x" + kCall, FinishReason::kStop);
  BOOST_TEST(rig.choice()["finish_reason"] == "stop");
  BOOST_TEST(rig.choice()["message"]["content"] == "x" + kCall);
  BOOST_TEST(!rig.choice()["message"].contains("tool_calls"));
}

BOOST_AUTO_TEST_CASE(one_call_at_a_time_ends_with_the_first) {
  Rig rig;
  rig.begin(kTools + R"(,"parallel_tool_calls":false)");
  rig.generate(kCall + kCall, FinishReason::kStop);
  BOOST_TEST(rig.choice()["finish_reason"] == "tool_calls");
  BOOST_TEST(rig.choice()["message"]["tool_calls"].size() == 1U);
}

BOOST_AUTO_TEST_CASE(the_request_carries_the_grammar_of_its_tools) {
  const auto grammar = [](const std::string& fields) {
    Rig rig;
    rig.begin(fields);
    const GrammarSpec spec = rig.generator.entry(1).request.choices[0].grammar;
    return spec.empty() ? Json() : Json::parse(spec.text)["format"];
  };
  BOOST_TEST(grammar("").is_null());
  BOOST_TEST(grammar(kTools)["type"] == "triggered_tags");
  BOOST_TEST(grammar(kTools + R"(,"tool_choice":"none")").is_null());
  BOOST_TEST(grammar(kTools + R"(,"tool_choice":"required")")["type"] == "sequence");
}

BOOST_AUTO_TEST_CASE(reasoning_is_beside_the_content_and_counted) {
  Rig rig(kThinks);
  rig.begin("");
  rig.generate("Hm.</think>\n\nHello", FinishReason::kStop);
  BOOST_TEST(rig.choice()["message"]["content"] == "Hello");
  BOOST_TEST(rig.choice()["message"]["reasoning_content"] == "Hm.");
  BOOST_TEST(rig.choice()["message"]["reasoning"] == "Hm.");
  BOOST_TEST(rig.whole()["usage"]["completion_tokens_details"]["reasoning_tokens"] == 11);

  Rig streamed(kThinks);
  streamed.begin(R"(,"stream":true,"stop":["ello","Hm"])");
  streamed.generate("Hm.</think>\n\nHello", FinishReason::kStop);
  BOOST_TEST(assembled(streamed.sink.events)["reasoning_content"] == "Hm.");
  BOOST_TEST(assembled(streamed.sink.events)["content"] == "H");

  Rig asked(kThinks);
  asked.begin(R"(,"stop":"m.","stop_in_reasoning":true)");
  asked.generate("Hm.</think>\n\nHello", FinishReason::kStop);
  BOOST_TEST(asked.choice()["message"]["reasoning"] == "H");
  BOOST_TEST(asked.choice()["message"]["content"].is_null());
  BOOST_TEST(asked.choice()["finish_reason"] == "stop");
}

}  // namespace
}  // namespace troupe
