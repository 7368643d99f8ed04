#include "actors/gateway/tools/tool_format.h"

#include <boost/test/unit_test.hpp>

#include "engine/chat_template/chat_template.h"

namespace troupe {
namespace {

ToolFormat recognised(const std::string& source) {
  const Result<ChatTemplate> compiled = ChatTemplate::compile(source);
  BOOST_REQUIRE_MESSAGE(compiled.ok(), compiled.status().message());
  return recognise_tool_format(compiled->traits());
}

BOOST_AUTO_TEST_CASE(the_format_of_calls_is_read_from_the_template) {
  BOOST_TEST((recognised("{% if tools %}<tool_call>{% endif %}") == ToolFormat::kHermes));
  BOOST_TEST((recognised("{{ '<|python_tag|>' + x }}") == ToolFormat::kLlama3));
  BOOST_TEST((recognised(R"({{ 'Respond as {"name": function, "parameters": dict}' }})") ==
              ToolFormat::kLlama3));
  BOOST_TEST((recognised("{{ '[TOOL_CALLS] [' }}") == ToolFormat::kMistral));
  BOOST_TEST((recognised("{{ '[TOOL_CALLS]' + name + '[ARGS]' }}") == ToolFormat::kMistralArgs));
  // A comment is not what the template says; and what says nothing gets the most common form.
  BOOST_TEST((recognised("{# [TOOL_CALLS] #}{{ messages }}") == ToolFormat::kHermes));
}

BOOST_AUTO_TEST_CASE(the_reasoning_is_read_from_the_template) {
  const auto plain = ChatTemplate::compile("{{ messages }}");
  const auto thinks = ChatTemplate::compile("{{ messages }}<think>\n");
  BOOST_TEST((recognise_reasoning_format(plain->traits()) == ReasoningFormat::kNone));
  BOOST_TEST((recognise_reasoning_format(thinks->traits()) == ReasoningFormat::kThink));
}

BOOST_AUTO_TEST_CASE(names_of_formats_go_both_ways) {
  for (const char* name : {"none", "hermes", "llama3", "mistral", "mistral-args"}) {
    BOOST_REQUIRE(tool_format_of(name).has_value());
    BOOST_TEST(to_string(*tool_format_of(name)) == name);
  }
  BOOST_TEST(!tool_format_of("Hermes").has_value());
  BOOST_TEST(!reasoning_format_of("yes").has_value());
}

BOOST_AUTO_TEST_CASE(the_prompts_end_tells_where_the_answer_begins) {
  const auto end = [](std::string_view tail) {
    return find_prompt_end(ReasoningFormat::kThink, tail);
  };
  BOOST_TEST((end("<|im_start|>assistant\n") == PromptEnd::kBeforeAnswer));
  BOOST_TEST((end("<|im_start|>assistant\n<think>\n") == PromptEnd::kInsideReasoning));
  BOOST_TEST((end("assistant\n<think>\n\n</think>\n\n") == PromptEnd::kBehindReasoning));
  BOOST_TEST((end("") == PromptEnd::kBeforeAnswer));
  BOOST_TEST((find_prompt_end(ReasoningFormat::kNone, "<think>") == PromptEnd::kBeforeAnswer));
}

}  // namespace
}  // namespace troupe
