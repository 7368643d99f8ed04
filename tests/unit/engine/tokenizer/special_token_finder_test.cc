#include "engine/tokenizer/special_token_finder.h"

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>

#include "engine/tokenizer/tokenizer_spec.h"

namespace troupe {

BOOST_AUTO_TEST_SUITE(special_token_finder)

BOOST_AUTO_TEST_CASE(the_first_hit_wins_and_of_those_the_longest) {
  const SpecialTokenFinder finder({{"<a>", 1}, {"<a>b", 2}, {"<ab>", 3}, {"a>c", 4}});
  const auto hit = finder.find("x<a>b<a>c", 0);
  BOOST_REQUIRE(hit.has_value());
  BOOST_TEST(hit->id == 2);
  BOOST_TEST(hit->begin == 1U);
  BOOST_TEST(hit->end == 5U);
  BOOST_TEST(finder.find("x<a>b<a>c", 5)->id == 1);
  BOOST_TEST(finder.find("x<a>c", 2)->id == 4);
  BOOST_TEST(!finder.find("<a", 0).has_value());
  BOOST_TEST(!finder.find("", 0).has_value());
}

BOOST_AUTO_TEST_CASE(outside_the_ranges_only_what_is_found_anywhere_counts) {
  const SpecialTokenFinder finder({{"<a>", 1}, {"xx", 2, true}, {"x<a>", 3}});
  using Range = SpecialTokenFinder::Range;
  const std::string text = "<a>xx<a>x<a>";
  BOOST_TEST(finder.find(text, 0, {})->id == 2);
  BOOST_TEST(!finder.find(text, 5, {}).has_value());
  const std::vector<Range> cut = {{0, 2}, {4, 7}, {8, 11}};  // no spelling lies wholly in one
  BOOST_TEST(finder.find(text, 0, cut)->id == 2);
  BOOST_TEST(!finder.find(text, 5, cut).has_value());
  const std::vector<Range> whole = {{0, 1}, {5, 12}};
  BOOST_TEST(finder.find(text, 0, whole)->id == 2);
  BOOST_TEST(finder.find(text, 5, whole)->id == 1);
  BOOST_TEST(finder.find(text, 8, whole)->id == 3);
}

BOOST_AUTO_TEST_CASE(nothing_is_found_without_spellings) {
  const SpecialTokenFinder finder({});
  BOOST_TEST(!finder.find("<|im_start|>", 0).has_value());
  BOOST_TEST(finder.find_exact("<|im_start|>") == kNoToken);
}

BOOST_AUTO_TEST_CASE(of_equal_spellings_the_higher_id_counts) {
  const SpecialTokenFinder finder({{"<a>", 1}, {"<a>", 5}, {"<a>", 3}});
  BOOST_TEST(finder.find_exact("<a>") == 5);
}

BOOST_AUTO_TEST_CASE(random_texts_give_what_trying_every_spelling_gives) {
  const std::vector<std::string> texts = {"a", "ab", "aba", "bb", "bab", "\xC3\xA9", "bbbb"};
  std::vector<SpecialTokenFinder::Spelling> spellings;
  for (size_t i = 0; i < texts.size(); ++i)
    spellings.push_back({texts[i], static_cast<TokenId>(i)});
  const SpecialTokenFinder finder(spellings);
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (size_t i = random() % 12; i > 0; --i) text += "abc\xC3\xA9"[random() % 5];
    const size_t from = random() % (text.size() + 1);
    TokenId wanted = kNoToken;
    size_t begin = from;
    for (; begin < text.size() && wanted == kNoToken; ++begin)
      for (size_t i = 0; i < texts.size(); ++i)
        if (text.compare(begin, texts[i].size(), texts[i]) == 0 &&
            (wanted == kNoToken || texts[i].size() > texts[static_cast<size_t>(wanted)].size()))
          wanted = static_cast<TokenId>(i);
    const auto hit = finder.find(text, from);
    BOOST_REQUIRE_EQUAL(hit.has_value(), wanted != kNoToken);
    if (!hit) continue;
    BOOST_TEST(hit->id == wanted);
    BOOST_TEST(hit->begin + 1 == begin);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace troupe
