#include "actors/gateway/text/choice_text.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/unit/actors/gateway/openai/tiny_model.h"

namespace troupe {
namespace {

using namespace test;

struct Fixture {
  std::unique_ptr<Tokenizer> tokenizer = make_tiny_tokenizer();
};

std::string join(ChoiceText& text, const std::vector<TokenId>& tokens) {
  std::string out;
  for (const TokenId token : tokens) {
    if (text.stopped()) break;
    out += text.append(token);
  }
  return text.stopped() ? out : out + text.finish();
}

BOOST_FIXTURE_TEST_CASE(a_character_split_over_tokens_appears_whole, Fixture) {
  ChoiceText text(*tokenizer, {});
  BOOST_TEST(text.append(kHello) == "Hello");
  BOOST_TEST(text.append(kOtter) == "");
  BOOST_TEST(text.characters() == 5U);
  BOOST_TEST(text.append(kOtterTail) == "\xF0\x9F\xA6\xA6!");
  BOOST_TEST(text.characters() == 7U);
  BOOST_TEST(text.finish() == "");
  BOOST_TEST(text.token_count() == 3U);
}

BOOST_FIXTURE_TEST_CASE(an_unfinished_character_at_the_end_becomes_a_replacement, Fixture) {
  ChoiceText text(*tokenizer, {});
  BOOST_TEST(text.append(kOtter) == "");
  BOOST_TEST(text.finish() == "\xEF\xBF\xBD");
}

BOOST_FIXTURE_TEST_CASE(control_tokens_are_counted_but_not_shown, Fixture) {
  ChoiceText text(*tokenizer, {});
  BOOST_TEST(text.append(kHello) == "Hello");
  BOOST_TEST(text.append(kImEnd) == "");
  BOOST_TEST(text.finish() == "");
  BOOST_TEST(text.token_count() == 2U);
}

BOOST_FIXTURE_TEST_CASE(stop_tokens_are_hidden_unless_asked_for, Fixture) {
  ChoiceText hidden(*tokenizer, {{}, StopText::kExclude, {kWorld}});
  BOOST_TEST(join(hidden, {kHello, kWorld}) == "Hello");
  ChoiceText shown(*tokenizer, {{}, StopText::kInclude, {kWorld}});
  BOOST_TEST(join(shown, {kHello, kWorld}) == "Hello world");
}

BOOST_FIXTURE_TEST_CASE(a_stop_string_across_tokens_is_found_and_cut, Fixture) {
  ChoiceText text(*tokenizer, {{"lo wor"}, StopText::kExclude, {}});
  BOOST_TEST(join(text, {kHello, kWorld, kHello}) == "Hel");
  BOOST_TEST(text.stopped());
  BOOST_TEST(text.token_count() == 2U);
}

BOOST_FIXTURE_TEST_CASE(a_replacement_from_the_flush_can_complete_a_stop_string, Fixture) {
  ChoiceText text(*tokenizer, {{"o\xEF\xBF\xBD"}, StopText::kExclude, {}});
  BOOST_TEST(text.append(kHello) == "Hell");
  BOOST_TEST(text.append(kOtter) == "");
  BOOST_TEST(text.finish() == "");
  BOOST_TEST(text.stopped());
}

}  // namespace
}  // namespace troupe
