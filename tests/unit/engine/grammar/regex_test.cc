#include "engine/grammar/regex.h"

#include <boost/test/unit_test.hpp>
#include <string>

namespace troupe {
namespace {

std::string written(const std::string& pattern, RegexUse use = RegexUse::kText) {
  auto expr = parse_regex(pattern, use);
  if (!expr.ok()) return "refused: " + expr.status().message();
  Rules rules;
  rules.set_root(std::move(expr).value());
  auto text = rules.write();
  return text.ok() ? text.value() : text.status().message();
}

BOOST_AUTO_TEST_SUITE(regex)

BOOST_AUTO_TEST_CASE(the_parts_of_the_syntax_become_their_grammar) {
  BOOST_TEST(written("abc") == "root ::= \"abc\"\n");
  BOOST_TEST(written("^a|b$") == "root ::= (\"a\" | \"b\")\n");
  BOOST_TEST(written("[a-c]+") == "root ::= [a-c]+\n");
  BOOST_TEST(written("(?:ab){2,3}") == "root ::= (\"ab\"){2,3}\n");
  BOOST_TEST(written("(?<n>a)(?P<m>b)?") == "root ::= (\"a\" (\"b\")?)\n");
  BOOST_TEST(written("a*?") == written("a*"));
  BOOST_TEST(written("\\d{4}") == "root ::= [0-9]{4,4}\n");
  BOOST_TEST(written("\\x41\\u0042\\u{43}\\.") == "root ::= \"ABC.\"\n");
  BOOST_TEST(written("\\uD83E\\uDDA6") == "root ::= \"\\U0001f9a6\"\n");
  BOOST_TEST(written("[^\\n]") == "root ::= [\\u0001-\\u0009\\u000b-\\ud7ff\\ue000-\\U0010ffff]\n");
}

BOOST_AUTO_TEST_CASE(in_a_json_string_what_json_must_escape_is_escaped) {
  BOOST_TEST(written("\"", RegexUse::kJsonString) == "root ::= \"\\u005c\\u0022\"\n");
  BOOST_TEST(written("[a\\n]", RegexUse::kJsonString) == "root ::= (\"a\" | \"\\u005cn\")\n");
  // Of a large set, only what stands as it is.
  const std::string any = written(".", RegexUse::kJsonString);
  BOOST_TEST(any.find("\\u0022") == std::string::npos);
  BOOST_TEST(any.find("\\u0020-\\u0021\\u0023-\\u005b\\u005d") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_decided_character_by_character_is_refused_with_its_place) {
  const std::pair<const char*, const char*> cases[] = {{"a(?=b)", "lookahead"},
                                                       {"(?<!a)b", "lookbehind"},
                                                       {"(a)\\1", "back-references"},
                                                       {"(?P=n)", "back-references"},
                                                       {"\\bword", "word boundaries"},
                                                       {"(?i)a", "flags"},
                                                       {"\\p{L}", "\\p"},
                                                       {"a^b", "'^'"},
                                                       {"(a$)b", "'$'"},
                                                       {"a{2", "{n}"},
                                                       {"a{3,2}", "wrong order"},
                                                       {"[z-a]", "backwards"},
                                                       {"[]", "no character"},
                                                       {"[a", "not closed"},
                                                       {"(a", "not closed"},
                                                       {"a)", "closes no group"},
                                                       {"*a", "nothing to repeat"},
                                                       {"a**", "two repetitions"},
                                                       {"\\q", "not known"},
                                                       {"\\", "backslash"},
                                                       {"\\ud800", "surrogate"},
                                                       {"a{20000}", "at most"},
                                                       {"{", "\\{"}};
  for (const auto& [pattern, word] : cases) {
    const std::string text = written(pattern);
    BOOST_TEST_CONTEXT(pattern << " -> " << text) {
      BOOST_TEST(text.starts_with("refused: "));
      BOOST_TEST(text.find(word) != std::string::npos);
    }
  }
  BOOST_TEST(written("ab(?=c)").find("character 5") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(size_and_nesting_are_bounded) {
  BOOST_TEST(written(std::string(20'000, 'a')).find("bytes") != std::string::npos);
  BOOST_TEST(written(std::string(10'000, '(')).find("nested") != std::string::npos);
  BOOST_TEST(written("\xFF").find("UTF-8") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
