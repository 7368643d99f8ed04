#include "actors/gateway/tools/answer_parser.h"

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace troupe {
namespace {

using enum AnswerPartKind;

AnswerParserOptions with(ToolFormat format) {
  AnswerParserOptions options;
  options.format.tools = format;
  options.tool_names = {"get_weather", "add", "f"};
  options.response_id = "chatcmpl-0011";
  return options;
}

AnswerParserOptions guided(ToolFormat format) {
  AnswerParserOptions options = with(format);
  options.guided = true;
  return options;
}

AnswerParserOptions thinking() {
  AnswerParserOptions options = with(ToolFormat::kHermes);
  options.format.reasoning = ReasoningFormat::kThink;
  return options;
}

struct Answer {
  std::vector<AnswerPart> parts;
  bool whole_calls = false;
  bool stopped = false;
  std::string stop_string;
};

// Each piece is pushed for itself, and parts are joined, as a client would.
Answer read(const AnswerParserOptions& options, const std::vector<std::string>& pieces) {
  AnswerParser parser(options);
  Answer out;
  const auto join = [&out](std::vector<AnswerPart> parts) {
    for (AnswerPart& part : parts) {
      const bool piece = part.kind != kCallStarted && part.kind != kCallFinished;
      if (piece) BOOST_TEST(!part.text.empty());
      if (piece && !out.parts.empty() && out.parts.back().kind == part.kind) {
        out.parts.back().text += part.text;
      } else {
        out.parts.push_back(std::move(part));
      }
    }
  };
  for (const std::string& piece : pieces) {
    if (parser.stopped()) break;
    std::vector<AnswerPart> parts;
    parser.push(piece, parts);
    join(std::move(parts));
  }
  if (!parser.stopped()) {
    std::vector<AnswerPart> parts;
    parser.finish(parts);
    join(std::move(parts));
  }
  out.whole_calls = parser.has_whole_calls();
  out.stopped = parser.stopped();
  out.stop_string = parser.stop_string();
  return out;
}

std::string shown(const Answer& answer) {
  std::string out;
  for (const AnswerPart& part : answer.parts) {
    switch (part.kind) {
      case kText:
        out += "text(" + part.text + ")";
        break;
      case kReasoning:
        out += "reasoning(" + part.text + ")";
        break;
      case kCallStarted:
        out += "call" + std::to_string(part.call) + "(" + part.text + ")";
        break;
      case kCallArguments:
        out += part.text;
        break;
      case kCallFinished:
        out += ";";
        break;
    }
  }
  if (answer.whole_calls) out += " calls";
  if (answer.stopped) out += " stopped" + answer.stop_string;
  return out;
}

// The answer, whole, must be the expected one; and cut anywhere, into two, into bytes or at random,
// the same.
void check(const AnswerParserOptions& options, const std::string& text,
           const std::string& expected) {
  BOOST_TEST_CONTEXT("text: " << text) {
    BOOST_TEST(shown(read(options, {text})) == expected);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      const std::string got = shown(read(options, {text.substr(0, cut), text.substr(cut)}));
      if (got != expected) BOOST_TEST(got == expected, "cut at " << cut << ": " << got);
    }
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    BOOST_TEST(shown(read(options, bytes)) == expected);
    std::mt19937 random(1);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::string> pieces;
      for (size_t at = 0; at < text.size();) {
        const size_t size = 1 + random() % 9;
        pieces.push_back(text.substr(at, size));
        at += size;
      }
      const std::string got = shown(read(options, pieces));
      if (got != expected) BOOST_TEST(got == expected, "in pieces: " << got);
    }
  }
}

BOOST_AUTO_TEST_CASE(hermes_calls_are_read_however_they_are_spaced) {
  const AnswerParserOptions options = with(ToolFormat::kHermes);
  check(options, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>",
        "call0(f){\"a\": 1}; calls");
  check(options, "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>", "call0(f){}; calls");
  check(options,
        " Let me look. \n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": "
        "\"Paris\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n"
        "</tool_call>\n",
        "text( Let me look.)call0(get_weather){\"city\": \"Paris\"};call1(add){}; calls");
  // Keys in any order and unknown ones, arguments as text or not at all.
  check(options,
        "<tool_call>{\"id\": 12, \"arguments\": {\"x\": [1, {\"y\": 2}]}, \"name\": \"f\"}"
        "</tool_call>",
        "call0(f){\"x\": [1, {\"y\": 2}]}; calls");
  check(options, R"(<tool_call>{"name":"f","arguments":"{\"a\": \"\\n\"}"}</tool_call>)",
        R"(call0(f){"a": "\n"}; calls)");
  check(options, R"(<tool_call>{"name":"f","arguments":null}</tool_call>)", "call0(f){}; calls");
  check(options, R"(<tool_call>{"name":"f"}</tool_call>)", "call0(f){}; calls");
  // A model that ends without closing has called all the same; text may follow.
  check(options, R"(<tool_call>{"name":"f"})", "call0(f){}; calls");
  check(options, "<tool_call>{\"name\":\"f\"}</tool_call>\n\nDone. ",
        "call0(f){};text(Done. ) calls");
  check(options, R"(<tool_call>{"name":"f"}</tool)", "call0(f){}; calls");
}

BOOST_AUTO_TEST_CASE(markers_and_braces_in_strings_are_no_markers_and_braces) {
  const std::string arguments =
      R"({"a": "</tool_call>", "b": "{\"name\": \"x\"}", "c": "}]\\", "d": "é\u00e9 🌍"})";
  check(with(ToolFormat::kHermes),
        "<tool_call>\n{\"name\": \"f\", \"arguments\": " + arguments + "}\n</tool_call>",
        "call0(f)" + arguments + "; calls");
  check(with(ToolFormat::kMistral),
        "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": " + arguments + "}]",
        "call0(f)" + arguments + "; calls");
  check(with(ToolFormat::kMistralArgs), "[TOOL_CALLS]f[ARGS]" + arguments,
        "call0(f)" + arguments + "; calls");
}

BOOST_AUTO_TEST_CASE(text_that_only_begins_like_a_marker_is_text) {
  const AnswerParserOptions options = with(ToolFormat::kHermes);
  check(options, "a <tool box> < <t <<tool_cal l> <tool_call",
        "text(a <tool box> < <t <<tool_cal "
        "l> <tool_call)");
  check(options, "plain\n\n text \n", "text(plain\n\n text \n)");
  check(options, "", "");
  check(with(ToolFormat::kNone), "<tool_call>{\"name\":\"f\"}</tool_call>",
        "text(<tool_call>{\"name\":\"f\"}</tool_call>)");
}

BOOST_AUTO_TEST_CASE(malformed_calls_are_shown_as_the_text_that_they_are) {
  const AnswerParserOptions options = with(ToolFormat::kHermes);
  for (const std::string text : {
           "<tool_call>\n{\"name\": \"nobody\", \"arguments\": {}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"f\", \"arguments\": [1]}\n</tool_call>",
           "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 01}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"f\", \"arguments\": {'a': 1}}\n</tool_call>",
           "<tool_call>\n{\"name\": \"f\", \"name\": \"f\"}\n</tool_call>",
           "<tool_call>\n{\"name\": 3}</tool_call>",
           "<tool_call>{}</tool_call>",
           "<tool_call>f(1)</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>",
           "<tool_call>{\"arguments\": {}}</tool_call>",
           "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"cut",
       }) {
    check(options, text, "text(" + text + ")");
  }
  // The next one counts.
  check(options, "<tool_call>oops <tool_call>{\"name\": \"f\"}</tool_call>",
        "text(<tool_call>oops)call0(f){}; calls");
  std::string deep = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ";
  for (int i = 0; i < 100; ++i) deep += "[";
  BOOST_TEST(shown(read(options, {deep})) == "text(" + deep + ")");
}

BOOST_AUTO_TEST_CASE(llama_calls_are_the_whole_answer_or_follow_the_tag) {
  const AnswerParserOptions options = with(ToolFormat::kLlama3);
  check(options, R"({"name": "f", "parameters": {"a": "b"}})", R"(call0(f){"a": "b"}; calls)");
  check(options, R"(<|python_tag|>{"type": "function", "name": "f", "parameters": {}})",
        "call0(f){}; calls");
  check(options, "\n\n{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"add\"}",
        "call0(f){};call1(add){}; calls");
  check(options, R"(Sure: {"name": "f", "parameters": {}})",
        R"(text(Sure: {"name": "f", "parameters": {}}))");
  check(options, R"({"answer": {"x": 1}} is it)", R"(text({"answer": {"x": 1}} is it))");
  check(options, "<|python_tag|>print(1)", "text(<|python_tag|>print(1))");
  check(options, R"({"name": "f"} then)", "call0(f){};text(then) calls");
}

BOOST_AUTO_TEST_CASE(mistral_calls_come_as_a_list_or_one_by_one) {
  const AnswerParserOptions list = with(ToolFormat::kMistral);
  check(list, R"([TOOL_CALLS] [{"name": "f", "arguments": {"a": [1]}}, {"name": "add"}])",
        R"(call0(f){"a": [1]};call1(add){}; calls)");
  check(list, "Well. [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}]",
        "text(Well.)call0(f){}; calls");
  check(list, "[TOOL_CALLS][]", "");
  check(list, R"([TOOL_CALLS][{"name": "f"}, 3])", "call0(f){};text(, 3]) calls");
  check(list, R"([TOOL_CALLS]{"name": "f"})", "call0(f){}; calls");
  const AnswerParserOptions args = with(ToolFormat::kMistralArgs);
  check(args, R"([TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]add[CALL_ID]abc123xyz[ARGS]{})",
        R"(call0(f){"a": 1};call1(add){}; calls)");
  check(args, R"([TOOL_CALLS]f{"a": 1})", R"(call0(f){"a": 1}; calls)");
  check(args, "[TOOL_CALLS]f[ARGH]{}", "text([TOOL_CALLS]f[ARGH]{})");
  check(args, "[TOOL_CALLS]unknown[ARGS]{}", "text([TOOL_CALLS]unknown[ARGS]{})");
}

BOOST_AUTO_TEST_CASE(guided_calls_are_shown_as_they_come) {
  for (const ToolFormat format :
       {ToolFormat::kHermes, ToolFormat::kLlama3, ToolFormat::kMistralArgs}) {
    AnswerParser parser(guided(format));
    std::vector<AnswerPart> parts;
    parser.push(call_begin(format, "f") + "{\"city\": \"Par", parts);
    BOOST_REQUIRE(parts.size() == 2U);
    BOOST_TEST((parts[0].kind == kCallStarted));
    BOOST_TEST(parts[0].text == "f");
    BOOST_TEST(parts[0].id == call_id(format, "chatcmpl-0011", 0, 0));
    BOOST_TEST(parts[1].text == "{\"city\": \"Par");
    parts.clear();
    parser.push("is\"", parts);
    BOOST_REQUIRE(parts.size() == 1U);
    BOOST_TEST(parts[0].text == "is\"");
    parts.clear();
    parser.finish(parts);
    BOOST_TEST(parts.empty());
    BOOST_TEST(!parser.has_whole_calls());
  }
  check(
      guided(ToolFormat::kHermes),
      "Now: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n"
      "{\"name\": \"add\", \"arguments\": {\"b\": \"",
      "text(Now:)call0(f){\"a\": 1};call1(add){\"b\": \"");
}

BOOST_AUTO_TEST_CASE(the_beginning_of_a_guided_call_is_never_text) {
  for (const std::string text :
       {"<tool_call>\n{\"name\": \"", "<tool_call>", "<tool_call>\n{\"na"}) {
    check(guided(ToolFormat::kHermes), text, "");
  }
  AnswerParserOptions only = guided(ToolFormat::kLlama3);
  only.calls_only = true;
  check(only, "{\"name\": \"f", "");
}

BOOST_AUTO_TEST_CASE(one_call_ends_the_answer_where_more_are_not_wanted) {
  AnswerParserOptions options = with(ToolFormat::kHermes);
  options.one_call = true;
  check(options, "a<tool_call>{\"name\": \"f\"}</tool_call><tool_call>{\"name\": \"f\"}",
        "text(a)call0(f){}; calls stopped");
}

BOOST_AUTO_TEST_CASE(reasoning_is_split_off_without_the_space_around_it) {
  const AnswerParserOptions options = thinking();
  check(options, "<think>\nHm,  hm.\n\n</think>\n\nHello. ", "reasoning(Hm,  hm.)text(Hello. )");
  check(options, "\n<think></think>x", "text(x)");
  check(options, "No <think>here</think>", "text(No <think>here</think>)");
  check(options, "<think>cut </thi", "reasoning(cut </thi)");
  check(options, "<think>a</think>\n<tool_call>\n{\"name\": \"f\"}\n</tool_call>",
        "reasoning(a)call0(f){}; calls");
  check(options, "<think>a <tool_call>{\"name\": \"f\"}</tool_call></think>b",
        "reasoning(a <tool_call>{\"name\": \"f\"}</tool_call>)text(b)");
  check(options, "<thi", "text(<thi)");
}

BOOST_AUTO_TEST_CASE(the_prompt_may_have_opened_or_closed_the_reasoning) {
  AnswerParserOptions options = thinking();
  options.prompt_end = PromptEnd::kInsideReasoning;
  check(options, "Hm.\n</think>\n\nHello", "reasoning(Hm.)text(Hello)");
  options.prompt_end = PromptEnd::kBehindReasoning;
  check(options, "\n\nHello <think>", "text(Hello <think>)");
}

BOOST_AUTO_TEST_CASE(stop_strings_look_at_text_alone_unless_asked) {
  AnswerParserOptions options = thinking();
  options.stops = {"stop", "\n\n"};
  check(options,
        "<think>stop\n\nit</think>a <tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "
        "\"stop\"}}</tool_call>b st stop c",
        "reasoning(stop\n\nit)text(a)call0(f){\"a\": \"stop\"};text(b st ) calls stoppedstop");
  check(options, "a \n\nb", "text(a ) stopped\n\n");
  options.stop_in_reasoning = true;
  check(options, "<think>a stop b</think>", "reasoning(a ) stoppedstop");
}

BOOST_AUTO_TEST_CASE(ids_tell_calls_apart_and_mistrals_have_the_form_its_templates_want) {
  BOOST_TEST(call_id(ToolFormat::kHermes, "chatcmpl-ab01", 2, 3) == "call_ab01_2_3");
  const std::string id = call_id(ToolFormat::kMistral, "chatcmpl-ab01", 2, 3);
  BOOST_TEST(id.size() == 9U);
  BOOST_TEST(id != call_id(ToolFormat::kMistral, "chatcmpl-ab01", 2, 4));
  BOOST_TEST(id == call_id(ToolFormat::kMistral, "chatcmpl-ab01", 2, 3));
}

}  // namespace
}  // namespace troupe
