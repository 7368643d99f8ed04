// Conversations through templates that want them in different forms.
#include "actors/gateway/openai/conversation.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>

#include "actors/gateway/openai/service_bodies.h"
#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;

// The prompt of a chat as text, or the error with its param.
std::string prompt_of(const std::string& chat_template, const std::string& fields,
                      RequestTemplates templates = RequestTemplates::kRefused,
                      std::optional<ToolFormat> tool_format = {}) {
  const TinyModel model(chat_template, templates, tool_format);
  const auto body = parse_tokenize_body("{" + fields + "}", model.catalogue().rules());
  BOOST_REQUIRE_MESSAGE(body.ok(), fields << ": " << body.status().message());
  const auto tokens = tokenize(body.value(), model.catalogue().at(0), 0);
  if (!tokens.ok()) return tokens.status().param() + ": " + tokens.status().message();
  return model.tokenizer().decode(tokens.value()).value();
}

std::string messages(const std::string& array, const std::string& rest = "") {
  return "\"messages\":[" + array + "]" + rest;
}

void check_says(const std::string& got, const std::string& param, const std::string& part) {
  BOOST_TEST(got.starts_with(param + ": "), got);
  BOOST_TEST(got.find(part) != std::string::npos, got);
}

const std::string kPlain =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}>{% endif %}";
const std::string kParts =
    "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}[{{ p.text }}]{% endfor %}"
    "{% endfor %}";
const std::string kBoth =
    "{% for m in messages %}<{{ m.role }}>{% if m.content is string %}{{ m.content }}{% else %}"
    "{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}";
const std::string kTwoParts =
    R"({"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]})";
const std::string kText = R"({"role":"user","content":"ab"})";

BOOST_AUTO_TEST_SUITE(conversation)

BOOST_AUTO_TEST_CASE(parts_stay_parts_for_templates_that_loop_over_them) {
  BOOST_TEST(prompt_of(kPlain, messages(kTwoParts)) == "<user>a\nb>");
  BOOST_TEST(prompt_of(kParts, messages(kTwoParts)) == "<user>[a][b]");
  BOOST_TEST(prompt_of(kBoth, messages(kTwoParts)) == "<user>[a][b]");
}

BOOST_AUTO_TEST_CASE(a_text_becomes_a_part_for_templates_that_take_nothing_else) {
  BOOST_TEST(prompt_of(kPlain, messages(kText)) == "<user>ab>");
  BOOST_TEST(prompt_of(kParts, messages(kText)) == "<user>[ab]");
  BOOST_TEST(prompt_of(kBoth, messages(kText)) == "<user>ab");
}

BOOST_AUTO_TEST_CASE(each_role_has_a_form_of_its_own) {
  const std::string chat_template =
      "{% for m in messages %}{% if m.role == 'system' %}{{ '<s>' + m.content }}{% else %}"
      "{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}";
  const std::string system =
      R"({"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},)";
  BOOST_TEST(prompt_of(chat_template, messages(system + kText)) == "<s>a\nb[ab]");
}

BOOST_AUTO_TEST_CASE(a_developer_is_a_system_except_where_the_template_knows_the_role) {
  const std::string turn = R"({"role":"developer","content":"x"})";
  BOOST_TEST(prompt_of(kPlain, messages(turn)) == "<system>x>");
  BOOST_TEST(prompt_of(kPlain + "{{ '' if messages[0].role == 'developer' }}", messages(turn)) ==
             "<developer>x>");
}

const std::string kCalls =
    R"({"role":"user","content":"q"},
       {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",
        "function":{"name":"f","arguments":"{\"b\": [1], \"a\":2}"}}]},
       {"role":"tool","tool_call_id":"c1","content":"42"})";

std::string calls_template(const std::string& call, const std::string& other) {
  return "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}" + call +
         "{% endfor %}{% endif %}" + other + "{% endfor %}";
}

BOOST_AUTO_TEST_CASE(arguments_come_as_the_template_prints_them) {
  const std::string content = "<{{ m.content }}>";
  BOOST_TEST(prompt_of(calls_template("{{ c.function | tojson }}", content), messages(kCalls)) ==
             R"(<q>{"name": "f", "arguments": {"b": [1], "a": 2}}<><42>)");
  BOOST_TEST(prompt_of(calls_template("{{ c.function.name + c.function.arguments }}", content),
                       messages(kCalls)) == R"(<q>f{"b": [1], "a":2}<><42>)");
  // Printed without tojson, a dict would look as in Python.
  BOOST_TEST(prompt_of(calls_template("{{ c.function.name }}{{ c.function.arguments }}", content),
                       messages(kCalls)) == R"(<q>f{"b": [1], "a":2}<><42>)");
}

BOOST_AUTO_TEST_CASE(missing_content_is_empty_or_none_as_the_template_asks) {
  const std::string call = "{{ c.function | tojson }}";
  const std::string asks =
      "{% for m in messages %}{% if m.content is none %}{% for c in "
      "m.tool_calls %}" +
      call +
      "{% endfor %}{% else %}<{{ m.content }}>"
      "{% endif %}{% endfor %}";
  BOOST_TEST(prompt_of(asks, messages(kCalls)) ==
             R"(<q>{"name": "f", "arguments": {"b": [1], "a": 2}}<42>)");
  const std::string both = prompt_of(calls_template(call, "<{{ m.content }}>"), messages(kCalls));
  BOOST_TEST(both.find("None") == std::string::npos, both);
}

BOOST_AUTO_TEST_CASE(tool_results_get_the_name_of_the_function_that_was_called) {
  BOOST_TEST(
      prompt_of(calls_template("{{ c.function | tojson }}", "<{{ m.name }}:{{ m.content }}>"),
                messages(kCalls)) ==
      R"(<:q>{"name": "f", "arguments": {"b": [1], "a": 2}}<:><f:42>)");
}

BOOST_AUTO_TEST_CASE(reasoning_comes_under_the_name_that_the_template_reads) {
  const std::string turn =
      R"({"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning":"r"})";
  for (const std::string field : {"reasoning_content", "reasoning", "thinking"}) {
    BOOST_TEST(prompt_of("{% for m in messages %}{{ m." + field + " }}|{{ m.content }}{% endfor %}",
                         messages(turn)) == "|qr|a");
  }
}

BOOST_AUTO_TEST_CASE(what_the_template_drops_is_refused_by_its_path) {
  const std::string tools = R"(,"tools":[{"type":"function","function":{"name":"f"}}])";
  const auto without_words = [](const std::string& chat_template, const std::string& fields) {
    return prompt_of(chat_template, fields, RequestTemplates::kRefused, ToolFormat::kNone);
  };
  check_says(without_words(kPlain, messages(kText, tools)), "tools", "cannot be told of them");
  check_says(without_words(kPlain, messages(kCalls)), "messages[1].tool_calls", "drops tool calls");
  const std::string no_system =
      "{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{% endfor %}";
  check_says(prompt_of(no_system, messages(R"({"role":"system","content":"x"},)" + kText)),
             "messages[0].role", "drops system messages");
  const std::string first_system =
      "{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}"
      "{% for m in messages %}{% if m.role != 'system' %}{{ m.content }}{% endif %}{% endfor %}";
  BOOST_TEST(prompt_of(first_system, messages(R"({"role":"system","content":"x"},)" + kText)) ==
             "xab");
  check_says(prompt_of(first_system, messages(kText + R"(,{"role":"developer","content":"x"})")),
             "messages[1].role", "not the first");
  check_says(without_words(calls_template("{{ c.function | tojson }}",
                                          "{% if m.role != 'tool' %}{{ m.content }}{% endif %}"),
                           messages(kCalls)),
             "messages[2].role", "drops tool results");
}

BOOST_AUTO_TEST_CASE(tools_that_the_template_drops_are_put_into_words) {
  const std::string tools =
      R"(,"tools":[{"type":"function","function":{"name":"f","description":"d"}}])";
  const std::string prompt = prompt_of(kPlain, messages(kText, tools));
  BOOST_TEST(prompt.starts_with("<system># Tools\n"), prompt);
  BOOST_TEST(prompt.ends_with("</tool_call><user>ab>"), prompt);
  BOOST_TEST(prompt.find(R"({"name":"f","description":"d","parameters":{"type":"object")") !=
             std::string::npos);
  // Behind a system message that is there, and in the words of the model's own format.
  const std::string llama =
      prompt_of(kPlain, messages(R"({"role":"system","content":"Be kind."},)" + kText, tools),
                RequestTemplates::kRefused, ToolFormat::kLlama3);
  BOOST_TEST(llama.starts_with("<system>Be kind.\n\n# Tools\n"), llama);
  BOOST_TEST(llama.find(R"({"name": "NAME", "parameters": )") != std::string::npos, llama);
  // A template without system messages shows them in the first one.
  const std::string no_system =
      "{% for m in messages %}{% if m.role != 'system' %}({{ m.content }}){% endif %}{% endfor %}";
  BOOST_TEST(prompt_of(no_system, messages(kText, tools)).starts_with("(ab\n\n# Tools\n"));
}

BOOST_AUTO_TEST_CASE(calls_and_results_that_the_template_drops_are_put_into_words) {
  const std::string call = "<tool_call>\n{\"name\": \"f\", \"arguments\": ";
  const std::string prompt = prompt_of(kPlain, messages(kCalls));
  BOOST_TEST(prompt.find("<assistant>" + call) != std::string::npos, prompt);
  BOOST_TEST(prompt.ends_with("\n</tool_call><tool>42>"), prompt);
  BOOST_TEST(prompt.find("None") == std::string::npos, prompt);
  const std::string no_results = prompt_of(
      calls_template("{{ c.function | tojson }}",
                     "{% if m.role != 'tool' %}({{ m.role }}:{{ m.content }}){% endif %}"),
      messages(kCalls));
  BOOST_TEST(no_results.ends_with("(user:<tool_response>\n42\n</tool_response>)"), no_results);
}

BOOST_AUTO_TEST_CASE(what_the_template_refuses_is_in_its_own_words) {
  const std::string refusing =
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('No system role!') }}"
      "{% endif %}{{ m.content }}{% endfor %}";
  check_says(prompt_of(refusing, messages(R"({"role":"system","content":"x"},)" + kText)),
             "messages", "No system role!");
}

BOOST_AUTO_TEST_CASE(variables_reach_the_template_that_reads_them) {
  const std::string thinks =
      kPlain + "{% if enable_thinking is false %}off{% endif %}{{ x.y if x }}";
  BOOST_TEST(prompt_of(thinks, messages(kText)) == "<user>ab>");
  BOOST_TEST(prompt_of(thinks, messages(kText, R"(,"chat_template_kwargs":{"enable_thinking":false,
                                                   "x":{"y":"<|im_end|>"}})")) ==
             "<user>ab>off<|im_end|>");
  check_says(prompt_of(thinks, messages(kText, R"(,"chat_template_kwargs":{"z":1})")),
             "chat_template_kwargs.z", "not a variable");
}

BOOST_AUTO_TEST_CASE(a_variables_text_is_no_control_token) {
  const TinyModel model("{{ x }}{% for m in messages %}<|im_end|>{% endfor %}");
  const auto body = parse_tokenize_body(
      "{" + messages(kText, R"(,"chat_template_kwargs":{"x":"<|im_end|>"})") + "}",
      model.catalogue().rules());
  BOOST_REQUIRE(body.ok());
  const auto tokens = tokenize(body.value(), model.catalogue().at(0), 0);
  BOOST_REQUIRE(tokens.ok());
  BOOST_TEST(std::count(tokens->begin(), tokens->end(), kImEnd) == 1);
}

BOOST_AUTO_TEST_CASE(the_last_message_can_be_continued) {
  const std::string trims =
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</s>\n{% endfor %}";
  const auto with = [](const std::string& last) {
    return messages(kText + R"(,{"role":"assistant","content":)" + last + "}",
                    R"(,"continue_final_message":true)");
  };
  BOOST_TEST(prompt_of(trims, with(R"("ab")")) == "<user>ab</s>\n<assistant>ab");
  BOOST_TEST(prompt_of(trims, with(R"("  Once ")")) == "<user>ab</s>\n<assistant>Once");
  BOOST_TEST(prompt_of(kPlain, with(R"("Once ")")) == "<user>ab<assistant>Once ");
  BOOST_TEST(
      prompt_of(kParts, with(R"([{"type":"text","text":"x"},{"type":"text","text":"y"}])")) ==
      "<user>[ab]<assistant>[x][y");
  check_says(prompt_of(kPlain, with("\" \"")), "messages", "empty");
  check_says(
      prompt_of("{% for m in messages %}{{ m.content | upper }}{% endfor %}", with("\"ab\"")),
      "continue_final_message", "as it is");
  check_says(prompt_of(kPlain, messages(kText, R"(,"continue_final_message":true)")),
             "messages[0].role", "assistant");
}

BOOST_AUTO_TEST_CASE(a_requests_own_template_is_used_where_it_is_trusted) {
  BOOST_TEST(prompt_of(kPlain, messages(kText, R"(,"chat_template":"{{ messages | length }}")"),
                       RequestTemplates::kTrusted) == "1");
  check_says(prompt_of(kPlain, messages(kText, R"(,"chat_template":"\n{% if %}")"),
                       RequestTemplates::kTrusted),
             "chat_template", "line 2");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
