// Templates that try to take all time, memory or stack.
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/unit/engine/chat_template/render_support.h"

namespace {

using namespace troupe;
using chat_template_test::text_of;

std::string repeated(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

// The template fails, and its message names the limit.
void check_limit(const std::string& source, const std::string& limit) {
  const std::string text = text_of(source);
  BOOST_CHECK_MESSAGE(text.starts_with("error: ") && text.find(limit + " = ") != std::string::npos,
                      source.substr(0, 80)
                          << "\nexpected " << limit << ", got " << text.substr(0, 200));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chat_template_hostile)

BOOST_AUTO_TEST_CASE(a_template_over_the_size_limit_is_refused) {
  BOOST_CHECK(text_of(std::string(1 << 20, 'x')).size() == 1 << 20);
  const std::string error = text_of(std::string((1 << 20) + 1, 'x'));
  BOOST_CHECK(error.find("source_bytes_max") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(deep_nesting_of_the_source_is_refused) {
  constexpr size_t kDeep = 20'000;
  check_limit("{{ " + repeated("(", kDeep) + "1" + repeated(")", kDeep) + " }}", "nesting_max");
  check_limit("{{ " + repeated("[", kDeep) + repeated("]", kDeep) + " }}", "nesting_max");
  check_limit("{{ " + repeated("{1:", kDeep) + "1" + repeated("}", kDeep) + " }}", "nesting_max");
  check_limit("{{ " + repeated("not ", kDeep) + "1 }}", "nesting_max");
  check_limit("{{ " + repeated("-", kDeep) + "1 }}", "nesting_max");
  check_limit("{{ 1" + repeated("+1", kDeep) + " }}", "nesting_max");
  check_limit("{{ 1" + repeated("|abs", kDeep) + " }}", "nesting_max");
  check_limit("{{ a" + repeated(".a", kDeep) + " }}", "nesting_max");
  check_limit("{{ a" + repeated("[0]", kDeep) + " }}", "nesting_max");
  check_limit("{{ 1" + repeated(" if 1 else 1", kDeep) + " }}", "nesting_max");
  check_limit("{{ 1" + repeated(" or 1", kDeep) + " }}", "nesting_max");
  check_limit(repeated("{% if 1 %}", kDeep) + repeated("{% endif %}", kDeep), "nesting_max");
  check_limit(repeated("{% for a in [1] %}", kDeep), "nesting_max");
  check_limit("{% set " + repeated("(", kDeep) + "a" + repeated(")", kDeep) + " = 1 %}",
              "nesting_max");
}

BOOST_AUTO_TEST_CASE(long_but_flat_templates_pass) {
  constexpr size_t kLong = 20'000;
  BOOST_CHECK_EQUAL(text_of("{{ 'a'" + repeated(" ~ 'b'", kLong) + " }}").size(), kLong + 1);
  BOOST_CHECK_EQUAL(text_of("{% if 0 %}" + repeated("{% elif 0 %}", kLong) + "{% endif %}"), "");
  BOOST_CHECK_EQUAL(text_of("{{ [" + repeated("1,", kLong) + "] | length }}"),
                    std::to_string(kLong));
  BOOST_CHECK_EQUAL(text_of("{{ 1" + repeated(" < 2 > 1", kLong) + " }}"), "True");
}

BOOST_AUTO_TEST_CASE(recursion_of_macros_is_bounded) {
  check_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "eval_depth_max");
  check_limit("{% macro m(x=m()) %}{% endmacro %}{{ m() }}", "eval_depth_max");
  check_limit(
      "{% macro m() %}{{ caller() }}{% endmacro %}{% macro a() %}{% call m() %}{{ a() }}"
      "{% endcall %}{% endmacro %}{{ a() }}",
      "eval_depth_max");
  BOOST_CHECK(
      text_of("{{ 'a' | map('map'" + repeated(", 'map'", 20'000) + ") }}").find("takes at most") !=
      std::string::npos);
}

BOOST_AUTO_TEST_CASE(long_loops_are_cut) {
  check_limit("{% for x in range(10**12) %}{% endfor %}", "range_max");
  check_limit("{{ range(-9223372036854775807, 9223372036854775807) }}", "range_max");
  check_limit("{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}",
              "steps_max");
  check_limit("{% set l = range(99999) | list %}{% for a in l %}{{ l | sum }}{% endfor %}",
              "steps_max");
  check_limit("{% set l = range(99999) | list %}{{ l | unique | length }}", "steps_max");
  check_limit("{% set s = 'ab' * 1000000 %}{% for a in range(9999) %}{{ 'zz' in s }}{% endfor %}",
              "work_bytes_max");
}

BOOST_AUTO_TEST_CASE(large_texts_are_cut) {
  check_limit("{{ 'x' * 10**9 }}", "output_bytes_max");
  check_limit("{{ 'xy' * 9223372036854775807 }}", "_max");
  check_limit("{{ [0] * 10**12 }}", "_max");
  check_limit("{% for x in range(100000) %}{{ 'x' * 11000 }}{% endfor %}", "output_bytes_max");
  check_limit(
      "{% set ns = namespace(s='x') %}{% for x in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
      "{% endfor %}",
      "output_bytes_max");
  check_limit(
      "{% set ns = namespace(l=[0]) %}{% for x in range(99) %}{% set ns.l = ns.l + ns.l %}"
      "{% endfor %}",
      "_max");
  check_limit("{{ ('x' * 1000000) | replace('', 'y' * 1000000) }}", "output_bytes_max");
  check_limit("{{ ('x' * 1000000).replace('x', 'y' * 1000) }}", "output_bytes_max");
  check_limit("{{ (['x' * 1000] * 20000) | join('y' * 1000) }}", "output_bytes_max");
  check_limit("{{ 'a' | indent(10**10, true) }}", "output_bytes_max");
  check_limit("{{ [[[1]]] | tojson(indent=10**10) }}", "output_bytes_max");
  check_limit("{{ ('\\n' * 10000000) | tojson }}", "output_bytes_max");
  check_limit("{{ [1] | batch(10**12, 0) }}", "_max");
}

BOOST_AUTO_TEST_CASE(growing_by_methods_and_formats_is_cut) {
  check_limit(
      "{% set l = [0] %}{% for x in range(99) %}{% set _ = l.extend(l) %}{% endfor %}{{ l }}",
      "_max");
  check_limit("{% set l = [] %}{% for x in range(9999) %}{% set _ = l.append(l) %}{% endfor %}",
              "value_depth_max");
  check_limit("{% set l = [] %}{% for x in range(99999) %}{% set _ = l.append(x) %}{% endfor %}",
              "_max");
  BOOST_CHECK(text_of("{{ '%9999999999d' % 1 }}").starts_with("error: "));
  BOOST_CHECK(text_of("{{ '%.99999f' % 1.5 }}").starts_with("error: "));
  BOOST_CHECK(text_of("{{ '{:9999999999}'.format(1) }}").starts_with("error: "));
  BOOST_CHECK_EQUAL(text_of("{{ ('%4096d' % 1) | length }}"), "4096");
  check_limit("{{ 'a'.center(10**12) }}", "_max");
  check_limit("{{ ('[' * 100000) | from_json }}", "value_depth_max");
  BOOST_CHECK(text_of("{{ '\"[[[\"' | from_json }}") == "[[[");
  check_limit("{% macro m() %}{{ [m][0]() }}{% endmacro %}{{ m() }}", "eval_depth_max");
}

BOOST_AUTO_TEST_CASE(values_do_not_nest_without_end) {
  check_limit(
      "{% set ns = namespace(l=[]) %}{% for x in range(9999) %}{% set ns.l = [ns.l] %}"
      "{% endfor %}",
      "value_depth_max");
  check_limit(
      "{% set ns = namespace(l={}) %}{% for x in range(9999) %}{% set ns.l = {1: ns.l} %}"
      "{% endfor %}",
      "value_depth_max");
  TemplateValue deep;
  for (int i = 0; i < 101; ++i) deep = TemplateValue::list({deep});
  BOOST_CHECK(text_of("x", {{"deep", deep}}).find("value_depth_max") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(objects_that_hold_themselves_are_harmless) {
  BOOST_CHECK_EQUAL(text_of("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns == ns.me[0] }}"),
                    "True");
  BOOST_CHECK(text_of("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me }}")
                  .find("namespace cannot be printed") != std::string::npos);
  BOOST_CHECK(text_of("{% set ns = namespace() %}{% set ns.me = [ns] %}{{ ns.me | tojson }}")
                  .find("no JSON value") != std::string::npos);
  BOOST_CHECK_EQUAL(text_of("{% set ns = namespace() %}{% for x in [1, 2] %}{% set ns.l = loop %}"
                            "{% set ns.c = loop.changed(loop) %}{% endfor %}{{ ns.l.index }}"),
                    "2");
  BOOST_CHECK_EQUAL(
      text_of("{% set ns = namespace() %}{% for x in [1, 2] %}{% macro m() %}{{ x }}"
              "{% endmacro %}{% set ns.m = m %}{% endfor %}{% set m = ns.m %}{{ m() }}"),
      "2");
}

BOOST_AUTO_TEST_CASE(random_bytes_never_end_the_process) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {
      "{%",   "%}",  "{{", "}}", "{#",     "#}",    " if ",   " for ", " in ",     "endfor",
      "set ", " = ", "'",  "\"", "(",      ")",     "[",      "]",     "{",        "}",
      ":",    ",",   ".",  "|",  " is ",   "not ",  "x",      "loop",  "range",    "tojson",
      "1",    "-",   "\n", "\\", "macro ", "trim",  " else ", "endif", "\xC3\xA9", "join",
      "~",    "+",   " *", "**", "==",     "items", "call ",  "raw",   "filter ",  "with "};
  for (int round = 0; round < 20'000; ++round) {
    std::string source = round % 2 == 0 ? "{{" : "{%";
    const size_t count = random() % 20;
    for (size_t i = 0; i < count; ++i) {
      source += random() % 50 == 0 ? std::string(1, static_cast<char>(random()))
                                   : parts[random() % parts.size()];
    }
    source += round % 2 == 0 ? "}}" : "%}";
    (void)text_of(source, {{"x", TemplateValue::data("v")}});
  }
}

BOOST_AUTO_TEST_SUITE_END()
