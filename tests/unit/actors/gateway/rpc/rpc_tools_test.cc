// Tools by RPC: what a request says of them, and calls in answers and chunks.

#include <boost/test/unit_test.hpp>

#include "tests/unit/actors/gateway/rpc/rpc_fixture.h"

namespace troupe {
namespace {

using namespace test;

// Knows tools, so that nothing is added in words and the small context is enough.
const std::string kTemplate =
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}{% for m in messages %}{{ "
    "m.content or '' }}{% endfor %}>";
const std::string kCall =
    "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1]}}\n</tool_call>";

struct Fixture : RpcFixture {
  Fixture() {
    models = &with_tools.catalogue();
    start();
  }
  // A chat that offers the functions f and g.
  static auto with_two_tools(RpcClient& client) {
    auto request = client.chat();
    auto tools = request.initParameters().initTools(2);
    tools[0].setName("f");
    tools[0].setDescription("Does f.");
    tools[0].setParameters(R"({"type":"object","properties":{"a":{"type":"array"}}})");
    tools[1].setName("g");
    return request;
  }
  TinyModel with_tools{kTemplate};
};

// What a client makes of the calls of choice 0.
struct Calls {
  std::vector<std::string> names, ids, arguments;
  std::string text;
  rpc::FinishReason reason = rpc::FinishReason::UNFINISHED;

  void add(rpc::Choice::Reader choice) {
    text += str(choice.getText());
    reason = choice.getFinishReason();
    for (const rpc::ToolCall::Reader call : choice.getToolCalls()) {
      if (call.hasName()) {
        BOOST_TEST(call.getIndex() == names.size());
        names.push_back(str(call.getName()));
        ids.push_back(str(call.getId()));
        arguments.emplace_back();
      }
      BOOST_REQUIRE(call.getIndex() + 1 == names.size());
      arguments.back() += str(call.getArguments());
    }
  }
};

class CallSink final : public rpc::ResponseSink::Server {
 public:
  CallSink(Calls& calls, int& chunks) : calls_(calls), chunks_(chunks) {}
  kj::Promise<void> chunk(ChunkContext context) override {
    for (const auto choice : context.getParams().getChunk().getChoices()) calls_.add(choice);
    ++chunks_;
    return kj::READY_NOW;
  }
  kj::Promise<void> end(EndContext) override { return kj::READY_NOW; }

 private:
  Calls& calls_;
  int& chunks_;
};

BOOST_FIXTURE_TEST_CASE(calls_stand_in_the_answer_beside_its_text, Fixture) {
  RpcClient client(*this);
  auto promise = with_two_tools(client).send();
  until([&] { return generator.running() == 1; });
  BOOST_TEST(with_tools.tokenizer().decode(generator.entry(1).request.prompt).value() == "fghi>");
  generator.text(1, "Wait. " + kCall + "\n" + kCall);
  generator.finish(1, FinishReason::kStop);
  const auto answer = await(kj::mv(promise));
  Calls calls;
  calls.add(answer.getAnswer().getChoices()[0]);
  BOOST_TEST(calls.text == "Wait.");
  BOOST_TEST(calls.names == (std::vector<std::string>{"f", "f"}), boost::test_tools::per_element());
  BOOST_TEST(calls.arguments == (std::vector<std::string>{"{\"a\": [1]}", "{\"a\": [1]}"}),
             boost::test_tools::per_element());
  BOOST_TEST(calls.ids[0].starts_with("call_"));
  BOOST_TEST(calls.ids[0] != calls.ids[1]);
  BOOST_TEST((calls.reason == rpc::FinishReason::TOOL_CALLS));
}

BOOST_FIXTURE_TEST_CASE(chunks_go_on_with_a_call_where_the_last_one_ended, Fixture) {
  RpcClient client(*this);
  Calls calls;
  int chunks = 0;
  auto request = with_two_tools(client);
  request.setSink(kj::heap<CallSink>(calls, chunks));
  auto promise = request.send();
  until([&] { return generator.running() == 1; });
  // Each token is given before the next one is made.
  for (const char c : kCall + kCall) {
    generator.token(1, static_cast<uint8_t>(c));
    const int before = chunks;
    until([&] { return chunks > before; });
  }
  generator.finish(1, FinishReason::kStop);
  await(kj::mv(promise));
  BOOST_TEST(calls.names == (std::vector<std::string>{"f", "f"}), boost::test_tools::per_element());
  BOOST_TEST(calls.arguments == (std::vector<std::string>{"{\"a\": [1]}", "{\"a\": [1]}"}),
             boost::test_tools::per_element());
  BOOST_TEST(calls.text == "");
  BOOST_TEST((calls.reason == rpc::FinishReason::TOOL_CALLS));
}

BOOST_FIXTURE_TEST_CASE(a_named_or_required_choice_holds_the_answer_to_a_grammar, Fixture) {
  RpcClient client(*this);
  auto free = with_two_tools(client);
  free.getParameters().getToolChoice().setNone();
  auto required = with_two_tools(client);
  required.getParameters().getToolChoice().setRequired();
  auto named = with_two_tools(client);
  named.getParameters().getToolChoice().setNamed("g");
  auto alone = with_two_tools(client);
  alone.getParameters().setParallelToolCalls(false);
  alone.getParameters().getToolChoice().setRequired();
  std::vector<std::string> grammars;
  for (auto* request : {&free, &required, &named, &alone}) {
    const auto promise = request->send();
    const uint64_t id = grammars.size() + 1;
    until([&] { return generator.running() == 1; });
    grammars.push_back(generator.entry(id).request.choices[0].grammar.text);
    generator.finish(id, FinishReason::kLength);
  }
  BOOST_TEST(grammars[0] == "");
  BOOST_TEST(grammars[1].find(R"(\"f\")") != std::string::npos, grammars[1]);
  BOOST_TEST(grammars[2].find(R"(\"f\")") == std::string::npos, grammars[2]);
  BOOST_TEST(grammars[3] != grammars[1]);
  // Shown to the model, or not.
  BOOST_TEST(with_tools.tokenizer().decode(generator.entry(1).request.prompt).value() == "hi>");
}

BOOST_FIXTURE_TEST_CASE(calls_of_the_conversation_reach_the_template, Fixture) {
  RpcClient client(*this);
  auto request = with_two_tools(client);
  auto messages = request.initMessages(2);
  messages[0].setRole("assistant");
  messages[0].initToolCalls(1)[0].setName("g");
  messages[0].getToolCalls()[0].setArguments("{}");
  messages[1].setRole("tool");
  messages[1].setToolCallId("call_1");
  messages[1].setContent("7");
  const auto promise = request.send();
  until([&] { return generator.running() == 1; });
  BOOST_TEST(with_tools.tokenizer().decode(generator.entry(1).request.prompt).value() ==
             "fg<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>7>");
}

BOOST_FIXTURE_TEST_CASE(what_is_wrong_with_tools_is_named_as_by_http, Fixture) {
  RpcClient client(*this);
  const auto fault = [&](auto change) {
    auto request = with_two_tools(client);
    change(request.getParameters());
    return text_of(failure(request.send()));
  };
  using Parameters = rpc::Parameters::Builder;
  BOOST_TEST(fault([](Parameters p) {
               p.getTools()[0].setParameters("{");
             }).find("tools[0].function.parameters must be JSON text") != std::string::npos);
  BOOST_TEST(fault([](Parameters p) {
               p.getTools()[1].setName("f");
             }).find("tools[1] has the name \"f\" of another tool") != std::string::npos);
  BOOST_TEST(fault([](Parameters p) {
               p.getToolChoice().setNamed("h");
             }).find("tool_choice.function.name must name one of the tools") != std::string::npos);
  BOOST_TEST(fault([](Parameters p) { p.initTools(129); }).find("at most 128 tools") !=
             std::string::npos);
  BOOST_TEST(fault([](Parameters p) {
               p.getTools()[0].setStrict(true);
               p.getTools()[0].setParameters(R"({"type":"object","patternProperties":{}})");
             }).find("patternProperties") != std::string::npos);
  auto completion = client.completion();
  completion.initParameters().initTools(1)[0].setName("f");
  BOOST_TEST(text_of(failure(completion.send())).find("tools") != std::string::npos);
  BOOST_TEST(generator.running() == 0U);
}

}  // namespace
}  // namespace troupe
