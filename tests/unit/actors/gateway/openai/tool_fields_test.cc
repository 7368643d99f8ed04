#include "actors/gateway/openai/tool_fields.h"

#include <array>
#include <boost/test/unit_test.hpp>
#include <string>

#include "actors/gateway/openai/json_parse.h"
#include "actors/gateway/openai/request.h"
#include "actors/gateway/tools/limits.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

Result<ToolRequest> parsed(const std::string& fields) {
  const Json object = parse_json("{" + fields + "}").value();
  return parse_tools(FieldReader(object, ""));
}

const std::string kF = R"({"type":"function","function":{"name":"f"}})";
const std::string kG =
    R"({"type":"function","function":{"name":"g","description":"d","strict":true,
        "parameters":{"type":"object","properties":{"x":{"type":"integer"}}}}})";

std::string tools(const std::string& array, const std::string& rest = "") {
  return "\"tools\":[" + array + "]" + rest;
}

BOOST_AUTO_TEST_CASE(tools_are_offered_unless_the_choice_is_none) {
  const ToolRequest both = parsed(tools(kF + "," + kG)).value();
  BOOST_TEST(both.on());
  BOOST_TEST((both.choice == ToolChoice::kAuto));
  BOOST_TEST(both.parallel);
  BOOST_TEST(both.tools[1].name == "g");
  BOOST_TEST(both.tools[1].description == "d");
  BOOST_TEST(both.tools[1].strict);
  BOOST_TEST(both.tools[1].path == "tools[1].function.parameters");
  BOOST_TEST(both.tools[0].parameters.dump() == R"({"type":"object","properties":{}})");
  BOOST_TEST(tools_for_template(both)[1]["function"]["parameters"]["properties"]["x"]["type"] ==
             "integer");

  for (const std::string& fields : {tools(""), std::string(), tools(kF, R"(,"tool_choice":"none")"),
                                   std::string(R"("tool_choice":"none")")}) {
    const ToolRequest none = parsed(fields).value();
    BOOST_TEST(!none.on(), fields);
    BOOST_TEST(tools_for_template(none).is_null(), fields);
  }
}

BOOST_AUTO_TEST_CASE(choices_are_taken_in_each_of_their_forms) {
  const auto choice = [](const std::string& value) {
    return parsed(tools(kF + "," + kG, ",\"tool_choice\":" + value)).value();
  };
  BOOST_TEST((choice("\"required\"").choice == ToolChoice::kRequired));
  BOOST_TEST((choice("null").choice == ToolChoice::kAuto));
  const ToolRequest named = choice(R"({"type":"function","function":{"name":"g"}})");
  BOOST_TEST((named.choice == ToolChoice::kNamed));
  BOOST_TEST(named.name == "g");
  BOOST_TEST(!parsed(tools(kF, R"(,"parallel_tool_calls":false)"))->parallel);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_refused_by_its_path) {
  struct Bad {
    std::string fields, param, says;
    StatusCode code = StatusCode::kInvalidArgument;
  };
  const auto function = [](const std::string& value) {
    return tools(R"({"type":"function","function":)" + value + "}");
  };
  std::string many = kF;
  for (size_t i = 0; i < kToolsMax; ++i) many += "," + kF;
  const std::string long_name(kToolNameBytesMax + 1, 'x');
  for (const Bad& bad : std::vector<Bad>{
           {R"("tools":{})", "tools", "array"},
           {tools("7"), "tools[0]", "object"},
           {tools("{}"), "tools[0].type", "missing"},
           {tools(R"({"type":"function"})"), "tools[0].function", "missing"},
           {tools(R"({"type":"web_search"})"), "tools[0].type", "web_search",
            StatusCode::kUnsupported},
           {tools(R"({"type":"custom","custom":{"name":"x"}})"), "tools[0].type", "custom",
            StatusCode::kUnsupported},
           {tools(R"({"type":"function","function":{"name":"f"},"extra":1})"), "tools[0].extra",
            "not a known field"},
           {function("{}"), "tools[0].function.name", "missing"},
           {function(R"({"name":""})"), "tools[0].function.name", "1 to 64"},
           {function(R"({"name":"a b"})"), "tools[0].function.name", "1 to 64"},
           {function(R"({"name":")" + long_name + "\"}"), "tools[0].function.name", "1 to 64"},
           {function(R"({"name":"f","descripton":"x"})"), "tools[0].function.descripton",
            "description"},
           {function(R"({"name":"f","description":7})"), "tools[0].function.description", "string"},
           {function(R"({"name":"f","parameters":[]})"), "tools[0].function.parameters", "object"},
           {function(R"({"name":"f","parameters":{"type":"string"}})"),
            "tools[0].function.parameters.type", "object"},
           {function(R"({"name":"f","strict":"yes"})"), "tools[0].function.strict", "true"},
           {tools(kF + "," + kF), "tools[1]", "differ"},
           {tools(many), "tools", "at most 128"},
           {tools(kF, R"(,"parallel_tool_calls":1)"), "parallel_tool_calls", "true"},
           {R"("tool_choice":"auto")", "tool_choice", "needs tools"},
           {tools("", R"(,"tool_choice":"required")"), "tool_choice", "needs tools"},
           {R"("tool_choice":{"type":"function","function":{"name":"f"}})", "tool_choice",
            "needs tools"},
           {tools(kF, R"(,"tool_choice":"f")"), "tool_choice", "required"},
           {tools(kF, R"(,"tool_choice":7)"), "tool_choice", "required"},
           {tools(kF, R"(,"tool_choice":{"type":"function","function":{"name":"g"}})"),
            "tool_choice.function.name", "one of the tools"},
           {tools(kF, R"(,"tool_choice":{"type":"function","name":"f"})"), "tool_choice.name",
            "not a known field"},
           {tools(kF, R"(,"tool_choice":{"type":"allowed_tools"})"), "tool_choice.type",
            "allowed_tools", StatusCode::kUnsupported},
       }) {
    const Result<ToolRequest> result = parsed(bad.fields);
    BOOST_REQUIRE_MESSAGE(!result.ok(), bad.fields.substr(0, 200));
    BOOST_TEST(result.status().param() == bad.param, result.status().message());
    BOOST_TEST((result.status().code() == bad.code), result.status().message());
    BOOST_TEST(result.status().message().find(bad.says) != std::string::npos,
               result.status().message());
  }
}

BOOST_AUTO_TEST_CASE(the_fields_reach_a_chats_body) {
  constexpr std::array<RequestRules, 1> kRules = {{{"m", 1000, 8192}}};
  const auto body = parse_chat_body(
      R"({"model":"m","messages":[{"role":"user","content":"x"}],)" + tools(kG) + "}", kRules);
  BOOST_REQUIRE_MESSAGE(body.ok(), body.status().message());
  BOOST_TEST(body->tools.on());
  BOOST_TEST(body->chat.tools[0]["function"]["name"] == "g");
  const auto bad = parse_chat_body(
      R"({"model":"m","messages":[{"role":"user","content":"x"}],"tool_choice":"required"})",
      kRules);
  BOOST_REQUIRE(!bad.ok());
  BOOST_TEST(bad.status().param() == "tool_choice");
}

}  // namespace
}  // namespace troupe
