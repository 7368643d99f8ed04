#include "actors/gateway/tools/tool_grammar.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/grammar/check_grammar.h"
#include "engine/grammar/markers.h"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

ToolRequest request_of(ToolChoice choice) {
  ToolRequest request;
  request.tools.resize(2);
  request.tools[0].name = "f";
  request.tools[0].parameters = {{"type", "object"}, {"title", "of f"}};
  request.tools[1].name = "g";
  request.tools[1].parameters = {{"type", "object"}, {"title", "of g"}};
  request.choice = choice;
  if (choice == ToolChoice::kNamed) request.name = "g";
  return request;
}

struct Given {
  ToolFormat format = ToolFormat::kHermes;
  ReasoningFormat reasoning = ReasoningFormat::kNone;
  PromptEnd prompt_end = PromptEnd::kBeforeAnswer;
  GrammarSpec demand = {};
};

Json grammar_of(const ToolRequest& request, const Given& given) {
  const GrammarSpec spec =
      answer_grammar(request, given.demand, {given.format, given.reasoning}, given.prompt_end);
  if (spec.empty()) return nullptr;
  BOOST_REQUIRE((spec.kind == GrammarKind::kStructuralTag));
  const Json tag = Json::parse(spec.text);
  BOOST_TEST(tag["type"] == "structural_tag");
  return tag["format"];
}

const Json kAnyObject = {{"type", "json_schema"}, {"json_schema", {{"type", "object"}}}};

Json schema_of(const std::string& tool) {
  return {{"type", "json_schema"}, {"json_schema", {{"type", "object"}, {"title", "of " + tool}}}};
}

Json text(const std::string& value) {
  return {{"type", "const_string"}, {"value", value}};
}

Json sequence(std::vector<Json> elements) {
  return {{"type", "sequence"}, {"elements", std::move(elements)}};
}

BOOST_AUTO_TEST_CASE(grammars_may_demand_every_marker_whatever_it_is_in_the_vocabulary) {
  for (const ToolFormat format :
       {ToolFormat::kHermes, ToolFormat::kLlama3, ToolFormat::kMistral, ToolFormat::kMistralArgs}) {
    const AnswerFormat both{format, ReasoningFormat::kThink};
    for (const std::string_view marker : both.markers()) {
      BOOST_TEST(std::count(kGrammarMarkers.begin(), kGrammarMarkers.end(), marker) == 1, marker);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_made_of_tools_is_a_grammar_that_the_checks_admit) {
  for (const ToolFormat format :
       {ToolFormat::kHermes, ToolFormat::kLlama3, ToolFormat::kMistral, ToolFormat::kMistralArgs}) {
    for (const ToolChoice choice : {ToolChoice::kAuto, ToolChoice::kRequired, ToolChoice::kNamed}) {
      const GrammarSpec spec = answer_grammar(
          request_of(choice), {}, {format, ReasoningFormat::kThink}, PromptEnd::kInsideReasoning);
      const Status status = check_grammar(spec);
      BOOST_TEST(status.ok(), spec.text << ": " << status.message());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_named_call_is_the_whole_answer) {
  const Json got = grammar_of(request_of(ToolChoice::kNamed), {});
  BOOST_TEST(got == sequence({text("<tool_call>\n{\"name\": \"g\", \"arguments\": "),
                              schema_of("g"), text("}\n</tool_call>")}));
}

BOOST_AUTO_TEST_CASE(required_calls_repeat_unless_only_one_is_wanted) {
  ToolRequest request = request_of(ToolChoice::kRequired);
  const Json many = grammar_of(request, {});
  BOOST_REQUIRE(many["elements"].size() == 2U);
  BOOST_TEST(many["elements"][0]["type"] == "or");
  BOOST_TEST(many["elements"][1]["type"] == "star");
  BOOST_TEST(many["elements"][1]["content"]["elements"][0] == text("\n"));
  request.parallel = false;
  BOOST_TEST(grammar_of(request, {}) == many["elements"][0]);
}

BOOST_AUTO_TEST_CASE(auto_leaves_text_free_until_a_call_begins) {
  ToolRequest request = request_of(ToolChoice::kAuto);
  request.tools[1].strict = true;
  const Json got = grammar_of(request, {});
  BOOST_TEST(got["type"] == "triggered_tags");
  BOOST_TEST(got["triggers"] == Json::array({"<tool_call>"}));
  BOOST_TEST(got["stop_after_first"] == false);
  BOOST_REQUIRE(got["tags"].size() == 2U);
  BOOST_TEST(got["tags"][0]["content"] == kAnyObject);
  BOOST_TEST(got["tags"][1]["content"] == schema_of("g"));
  BOOST_TEST(got["tags"][1]["begin"] == "<tool_call>\n{\"name\": \"g\", \"arguments\": ");
  request.parallel = false;
  BOOST_TEST(grammar_of(request, {})["stop_after_first"] == true);
}

BOOST_AUTO_TEST_CASE(llamas_calls_begin_with_a_name_that_was_offered) {
  const Json got = grammar_of(request_of(ToolChoice::kAuto), {.format = ToolFormat::kLlama3});
  BOOST_TEST(got["triggers"] == Json::array({"{\"name\": \"f\"", "{\"name\": \"g\""}));
  BOOST_TEST(got["tags"][0]["begin"] == "{\"name\": \"f\", \"parameters\": ");
}

BOOST_AUTO_TEST_CASE(mistrals_calls_come_in_a_list_or_each_with_its_marker) {
  const Json list = grammar_of(request_of(ToolChoice::kNamed), {.format = ToolFormat::kMistral});
  BOOST_TEST(list["elements"][0] == text("[TOOL_CALLS]["));
  BOOST_TEST(list["elements"][2] == text("]"));
  const Json free = grammar_of(request_of(ToolChoice::kAuto), {.format = ToolFormat::kMistral});
  BOOST_TEST(free["triggers"] == Json::array({"[TOOL_CALLS]"}));
  BOOST_TEST(free["tags"][0]["begin"] == "[TOOL_CALLS][");
  const Json args =
      grammar_of(request_of(ToolChoice::kNamed), {.format = ToolFormat::kMistralArgs});
  BOOST_TEST(args == sequence({text("[TOOL_CALLS]g[ARGS]"), schema_of("g")}));
}

BOOST_AUTO_TEST_CASE(reasoning_comes_first_as_the_prompt_left_it) {
  Given given{.reasoning = ReasoningFormat::kThink};
  const ToolRequest request = request_of(ToolChoice::kNamed);
  const Json call = grammar_of(request, {});
  const Json thoughts = {{"type", "any_text"}, {"excludes", Json::array({"</think>"})}};

  const Json optional = grammar_of(request, given);
  BOOST_TEST(optional["elements"][0]["type"] == "optional");
  BOOST_TEST(optional["elements"][1] == call);
  given.prompt_end = PromptEnd::kInsideReasoning;
  BOOST_TEST(grammar_of(request, given) == sequence({thoughts, text("</think>\n\n"), call}));
  given.prompt_end = PromptEnd::kBehindReasoning;
  BOOST_TEST(grammar_of(request, given) == call);
}

BOOST_AUTO_TEST_CASE(a_demand_stands_alone_beside_calls_or_behind_reasoning) {
  Given given{.demand = {GrammarKind::kJsonSchema, R"({"type":"array"})"}};
  const Json demand = {{"type", "json_schema"}, {"json_schema", {{"type", "array"}}}};
  const GrammarSpec alone = answer_grammar({}, given.demand, {}, PromptEnd::kBeforeAnswer);
  BOOST_TEST((alone == given.demand));
  BOOST_TEST(answer_grammar({}, {}, {}, PromptEnd::kBeforeAnswer).empty());

  const Json either = grammar_of(request_of(ToolChoice::kAuto), given);
  BOOST_TEST(either["type"] == "or");
  BOOST_TEST(either["elements"][1] == demand);

  given.reasoning = ReasoningFormat::kThink;
  given.prompt_end = PromptEnd::kInsideReasoning;
  const Json behind = grammar_of({}, given);
  BOOST_TEST(behind["elements"][2] == demand);
}

}  // namespace
}  // namespace troupe
