// What the source of a template tells about what it can express.
#include "engine/chat_template/template_traits.h"

#include <boost/test/unit_test.hpp>

#include "engine/chat_template/chat_template.h"

namespace {

using namespace troupe;

TemplateTraits traits_of(const std::string& source) {
  const Result<ChatTemplate> compiled = ChatTemplate::compile(source);
  BOOST_REQUIRE_MESSAGE(compiled.ok(), source << ": " << compiled.status().message());
  BOOST_CHECK_EQUAL(compiled.value().source(), source);
  return compiled.value().traits();
}

void check_format(const std::string& source, ContentFormat format) {
  BOOST_CHECK_MESSAGE(traits_of(source).content_format() == format, source);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(template_traits)

BOOST_AUTO_TEST_CASE(variables_and_fields_are_found_wherever_they_are_read) {
  const TemplateTraits traits = traits_of(
      "{% macro m(x, y=enable_thinking) %}{% for a in [documents] if c1 %}{{ a.b[c2] }}{% else %}"
      "{{ x[c3:c4] }}{% endfor %}{% endmacro %}{% call m(1) %}{{ c5 if c6 else c7 }}{% endcall %}"
      "{% filter indent(c8) %}{{ {'k': c9} }}{% endfilter %}{% with w = c10 %}{% endwith %}"
      "{% if 1 < c11 %}{% elif c12 is defined %}{% endif %}{{ x.get('gotten') ~ -c13 }}"
      "{{ 'asked' in x or x['taken'] }}{{ x | selectattr('picked') | list + c14 }}");
  for (int i = 1; i <= 14; ++i) {
    BOOST_CHECK_MESSAGE(traits.reads_variable("c" + std::to_string(i)), i);
  }
  BOOST_CHECK(traits.reads_documents());
  BOOST_CHECK(traits.reads_enable_thinking());
  BOOST_CHECK(!traits.reads_tools());
  for (const char* field : {"b", "gotten", "asked", "taken", "picked"}) {
    BOOST_CHECK_MESSAGE(traits.reads_field(field), field);
  }
  BOOST_CHECK(!traits.reads_tool_calls());
  BOOST_CHECK(!traits.reads_field("c1"));
  BOOST_CHECK(traits_of("{{ tools }}{{ m.tool_calls }}").reads_tools());
  BOOST_CHECK(traits_of("{{ m['tool_calls'] }}").reads_tool_calls());
}

BOOST_AUTO_TEST_CASE(markers_are_found_in_text_and_in_literals_but_not_in_comments) {
  const TemplateTraits traits =
      traits_of("a<tool_call>b{{ '[TOOL_CALLS]' + x }}{# <|python_tag|> #}{{ r == 'developer' }}");
  BOOST_CHECK(traits.spells("<tool_call>"));
  BOOST_CHECK(traits.spells("[TOOL_CALLS]"));
  BOOST_CHECK(!traits.spells("<|python_tag|>"));
  BOOST_CHECK(traits.names("developer"));
  BOOST_CHECK(!traits.names("TOOL_CALLS"));
}

BOOST_AUTO_TEST_CASE(a_loop_over_the_content_asks_for_parts) {
  check_format("{% for m in messages %}{{ m.content }}{% endfor %}", ContentFormat::kText);
  check_format(
      "{% for m in messages %}{% for c in m.content %}{{ c.text }}{% endfor %}{% endfor %}",
      ContentFormat::kParts);
  check_format("{% for c in m['content'] | selectattr('type', 'equalto', 'text') %}{% endfor %}",
               ContentFormat::kParts);
  check_format(
      "{% if m['content'] is string %}{% else %}{% for c in m['content'] %}{% endfor %}"
      "{% endif %}",
      ContentFormat::kTextOrParts);
  check_format("{% set c = m.get('content') or [] %}{% for x in c %}{% endfor %}",
               ContentFormat::kParts);
}

BOOST_AUTO_TEST_CASE(the_content_is_followed_through_macros_and_assignments) {
  check_format(
      "{% macro show(it) %}{% if it is not string %}{% for c in it %}{{ c }}{% endfor %}"
      "{% endif %}{% endmacro %}{{ show(m.content) }}",
      ContentFormat::kTextOrParts);
  check_format(
      "{% macro show(a, it) %}{% set b = it %}{% for c in b %}{% endfor %}{% endmacro %}"
      "{{ show(1, it=m.content) }}",
      ContentFormat::kParts);
  check_format(
      "{% macro show(a, it) %}{% for c in a %}{% endfor %}{% endmacro %}"
      "{{ show(1, m.content) }}",
      ContentFormat::kText);
  check_format("{% set words = m.content.split(' ') %}{% for w in words %}{% endfor %}",
               ContentFormat::kText);
}

BOOST_AUTO_TEST_SUITE_END()
