// What compile() and render() refuse, and what they say about it.
#include <boost/test/unit_test.hpp>

#include "tests/unit/engine/chat_template/render_support.h"

namespace {

using namespace troupe;
using chat_template_test::text_of;

// Compiling fails with this code and a message that holds both texts.
void check_refused(const std::string& source, StatusCode code, const std::string& line,
                   const std::string& name) {
  const Result<ChatTemplate> compiled = ChatTemplate::compile(source);
  BOOST_REQUIRE_MESSAGE(!compiled.ok(), source << " compiled");
  const std::string& message = compiled.status().message();
  BOOST_CHECK_MESSAGE(compiled.status().code() == code, source << ": " << message);
  BOOST_CHECK_MESSAGE(message.starts_with("chat template line " + line + ": "), message);
  BOOST_CHECK_MESSAGE(message.find(name) != std::string::npos, message);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chat_template_refusal)

BOOST_AUTO_TEST_CASE(unknown_names_are_refused_at_compile_time_even_in_branches_not_taken) {
  const auto code = StatusCode::kUnsupported;
  check_refused("a\nb\n{% if false %}{{ x | nofilter }}{% endif %}", code, "3", "'nofilter'");
  check_refused("{{ 1 is notest }}", code, "1", "'notest'");
  check_refused("\n{{ x.nomethod() }}", code, "2", "'nomethod'");
  check_refused("{% if 0 %}\n{{ nofunction() }}{% endif %}", code, "2", "'nofunction'");
  check_refused("{{ x | map('nofilter') }}", code, "1", "'nofilter'");
  check_refused("{{ x | selectattr('a', 'notest') }}", code, "1", "'notest'");
  check_refused("{{ x.y.z.append(1) }}", code, "1", "'append'");
  check_refused("{{ [1].pop() }}", code, "1", "'pop'");
  check_refused("{{ x.sort() }}", code, "1", "'sort'");
  check_refused("{% include 'x' %}", code, "1", "'include'");
  check_refused("{% block x %}{% endblock %}", code, "1", "'block'");
  check_refused("{% for x in y recursive %}{% endfor %}", code, "1", "recursive");
  check_refused("{{ x[1, 2] }}", code, "1", "subscript");
}

BOOST_AUTO_TEST_CASE(syntax_errors_name_the_line_and_what_was_expected) {
  const auto code = StatusCode::kInvalidArgument;
  check_refused("x\n{% if a %}\n{% for b in c %}\n", code, "3", "endfor");
  check_refused("x\n{% if a %}\n", code, "2", "endif");
  check_refused("{{ a", code, "1", "not closed");
  check_refused("\n\n{% endif %}", code, "3", "endif");
  check_refused("{{ a + }}", code, "1", "an expression");
  check_refused("a{% raw %}b", code, "1", "endraw");
  check_refused("{{ l[] }}", code, "1", "a subscript");
  check_refused("{# x", code, "1", "{#");
  check_refused("{{ 'a }}", code, "1", "string");
  check_refused("{{ 99999999999999999999 }}", code, "1", "64 bits");
  check_refused("{{ '\\ud800' }}", code, "1", "Unicode");
  check_refused("{%- set x -%}\n{%- break -%}\n", code, "2", "outside of a loop");
}

BOOST_AUTO_TEST_CASE(bytes_that_are_no_utf8_are_refused) {
  const Result<ChatTemplate> compiled = ChatTemplate::compile("ab\xC3(");
  BOOST_REQUIRE(!compiled.ok());
  BOOST_CHECK(compiled.status().message().find("byte 2") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_raised_exception_is_the_templates_own_text) {
  const auto pieces =
      chat_template_test::pieces_of("{{ raise_exception('Roles must alternate, ' + who + '!') }}",
                                    {{"who", TemplateValue::data("Bo")}});
  BOOST_CHECK(pieces.status() == invalid_argument("Roles must alternate, Bo!"));
}

BOOST_AUTO_TEST_CASE(errors_while_rendering_name_the_line_and_the_expression) {
  BOOST_CHECK_EQUAL(
      text_of("\n{{ message.foo.bar }}", {{"message", TemplateValue::dict(TemplateValue::Dict())}}),
      "error: chat template line 2: 'message.foo' is undefined");
  BOOST_CHECK_EQUAL(text_of("{{ 'a' + m }}", {{"m", TemplateValue::none()}}),
                    "error: chat template line 1: '+' does not work on 'str' and 'NoneType'");
  BOOST_CHECK_EQUAL(text_of("{{ m['x'][0] | join(1, 2, 3) }}"),
                    "error: chat template line 1: 'm' is undefined");
  BOOST_CHECK_EQUAL(text_of("{{ 1 | join }}"),
                    "error: chat template line 1: the filter 'join': 'int' has no elements");
  BOOST_CHECK_EQUAL(text_of("{{ 9223372036854775807 + 1 }}"),
                    "error: chat template line 1: an integer does not fit into 64 bits");
  BOOST_CHECK_EQUAL(text_of("{{ (-9223372036854775807 - 1) // -1 }}"),
                    "error: chat template line 1: an integer does not fit into 64 bits");
  BOOST_CHECK_EQUAL(text_of("{{ (-9223372036854775807 - 1) % -1 }}"), "0");
}

BOOST_AUTO_TEST_CASE(the_context_must_be_a_dict) {
  const Result<ChatTemplate> compiled = ChatTemplate::compile("x");
  BOOST_REQUIRE(compiled.ok());
  BOOST_CHECK(compiled.value().render(TemplateValue::none(), 0).status().code() ==
              StatusCode::kInvalidArgument);
}

BOOST_AUTO_TEST_SUITE_END()
