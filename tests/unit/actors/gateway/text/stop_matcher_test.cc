#include "actors/gateway/text/stop_matcher.h"

#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace troupe {
namespace {

struct Outcome {
  std::string text;
  bool matched = false;
  bool operator==(const Outcome&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Outcome& o) {
  return out << '"' << o.text << "\" " << (o.matched ? "matched" : "not matched");
}

// The definition: the earliest occurrence in the whole text, the shortest of those that begin
// there.
Outcome reference(const std::string& text, const std::vector<std::string>& stops, StopText mode) {
  for (size_t at = 0; at < text.size(); ++at) {
    std::optional<size_t> end;
    for (const std::string& stop : stops) {
      if (text.compare(at, stop.size(), stop) != 0) continue;
      if (!end || at + stop.size() < *end) end = at + stop.size();
    }
    if (end) return {text.substr(0, mode == StopText::kInclude ? *end : at), true};
  }
  return {text, false};
}

Outcome run(const std::vector<std::string>& pieces, const std::vector<std::string>& stops,
            StopText mode) {
  StopMatcher matcher(stops, mode);
  size_t longest = 0;
  for (const std::string& stop : stops) longest = std::max(longest, stop.size());
  std::string text;
  for (const std::string& piece : pieces) {
    text += matcher.push(piece);
    if (longest > 0) BOOST_TEST(matcher.held_bytes() < longest);
    if (longest == 0) BOOST_TEST(matcher.held_bytes() == 0U);
  }
  text += matcher.flush();
  return {text, matcher.matched()};
}

std::vector<std::string> cut(const std::string& text, size_t piece_bytes) {
  std::vector<std::string> pieces;
  for (size_t at = 0; at < text.size(); at += piece_bytes) {
    pieces.push_back(text.substr(at, piece_bytes));
  }
  return pieces;
}

BOOST_AUTO_TEST_CASE(every_start_and_length_agrees_with_a_search_of_the_whole_text) {
  const std::string text = "the cat sat on the mat, the cat sat; aaaab abab ababc the end.";
  for (size_t start = 0; start < text.size(); ++start) {
    for (size_t length = 1; length <= 8 && start + length <= text.size(); ++length) {
      const std::vector<std::string> stops = {text.substr(start, length)};
      for (const StopText mode : {StopText::kExclude, StopText::kInclude}) {
        for (size_t piece = 1; piece <= 7; ++piece) {
          BOOST_TEST(run(cut(text, piece), stops, mode) == reference(text, stops, mode));
        }
      }
    }
  }
}

// All texts of 7 letters over {a, b, c}, with pairs of stops that contain or overlap each other.
BOOST_AUTO_TEST_CASE(all_small_texts_agree_for_overlapping_stops) {
  const std::vector<std::vector<std::string>> stop_lists = {{"ab"},        {"abc", "bc"},
                                                            {"abca", "b"}, {"aab", "ab", "b"},
                                                            {"ab", "abc"}, {"cc", "ca", "bcab"}};
  for (int code = 0; code < 2187; ++code) {
    std::string text;
    for (int digits = code, i = 0; i < 7; ++i, digits /= 3) text += char('a' + digits % 3);
    for (const auto& stops : stop_lists) {
      for (size_t piece : {1, 2, 3, 7}) {
        const Outcome got = run(cut(text, piece), stops, StopText::kExclude);
        const Outcome expected = reference(text, stops, StopText::kExclude);
        if (got != expected) BOOST_TEST(got == expected, text << " by " << piece);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(text_that_cannot_begin_a_stop_is_shown_at_once) {
  StopMatcher matcher({"stop"}, StopText::kExclude);
  BOOST_TEST(matcher.push("hello st") == "hello ");
  BOOST_TEST(matcher.push("a") == "sta");
  BOOST_TEST(matcher.push("st") == "");
  BOOST_TEST(matcher.flush() == "st");
  BOOST_TEST(!matcher.matched());
}

BOOST_AUTO_TEST_CASE(nothing_is_shown_after_a_match) {
  StopMatcher matcher({"\n"}, StopText::kExclude);
  BOOST_TEST(matcher.push("one\ntwo") == "one");
  BOOST_TEST(matcher.matched());
  BOOST_TEST(matcher.push("three") == "");
  BOOST_TEST(matcher.flush() == "");
}

BOOST_AUTO_TEST_CASE(a_composed_letter_does_not_match_its_decomposed_form) {
  StopMatcher matcher({"e\xCC\x81"}, StopText::kExclude);
  BOOST_TEST(matcher.push("caf\xC3\xA9") == "caf\xC3\xA9");
  BOOST_TEST(!matcher.matched());
}

BOOST_AUTO_TEST_CASE(a_complete_match_behind_an_unfinished_longer_one_counts_at_the_end) {
  StopMatcher matcher({"abcX", "bc"}, StopText::kExclude);
  BOOST_TEST(matcher.push("abc") == "");
  BOOST_TEST(!matcher.matched());
  BOOST_TEST(matcher.flush() == "a");
  BOOST_TEST(matcher.matched());
}

}  // namespace
}  // namespace troupe
