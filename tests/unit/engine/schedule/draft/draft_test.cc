#include <boost/test/unit_test.hpp>
#include <random>
#include <vector>

#include "engine/schedule/draft/draft_pace.h"
#include "engine/schedule/draft/ngram_drafter.h"

using namespace troupe;

namespace {

using Tokens = std::vector<TokenId>;

// The same by search, without a table.
Tokens plain_draft(const Tokens& tokens, size_t most) {
  const size_t n = tokens.size();
  if (n < kDraftMatchTokens) return {};
  for (size_t place = n - 1; place >= kDraftMatchTokens; --place) {
    if (!std::equal(tokens.end() - kDraftMatchTokens, tokens.end(),
                    tokens.begin() + static_cast<ptrdiff_t>(place - kDraftMatchTokens))) {
      continue;
    }
    Tokens all = tokens;
    while (all.size() < n + most) all.push_back(all[place + all.size() - n]);
    return {all.begin() + static_cast<ptrdiff_t>(n), all.end()};
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(draft)

BOOST_AUTO_TEST_CASE(what_followed_the_latest_earlier_place_is_guessed) {
  NgramDrafter drafter;
  drafter.append(Tokens{1, 2, 3, 4, 5, 9, 1, 2, 3, 6, 7, 8, 1, 2, 3});
  BOOST_TEST(drafter.draft(3) == (Tokens{6, 7, 8}));
  BOOST_TEST(drafter.draft(5) == (Tokens{6, 7, 8, 1, 2}));
  BOOST_TEST(drafter.draft(0) == Tokens{});
}

BOOST_AUTO_TEST_CASE(a_new_run_or_a_short_text_gives_no_guess) {
  NgramDrafter drafter;
  BOOST_TEST(drafter.draft(4).empty());
  drafter.append(Tokens{1, 2});
  BOOST_TEST(drafter.draft(4).empty());
  drafter.append(Tokens{3, 4, 5});
  BOOST_TEST(drafter.draft(4).empty());
}

BOOST_AUTO_TEST_CASE(a_repeated_phrase_is_guessed_to_go_on_repeating) {
  NgramDrafter drafter;
  drafter.append(Tokens{7, 7, 7, 7});
  BOOST_TEST(drafter.draft(4) == (Tokens{7, 7, 7, 7}));
  NgramDrafter pairs;
  pairs.append(Tokens{1, 2, 1, 2, 1});
  BOOST_TEST(pairs.draft(5) == (Tokens{2, 1, 2, 1, 2}));
}

BOOST_AUTO_TEST_CASE(the_table_finds_what_a_search_finds) {
  std::mt19937 random(3);
  for (const TokenId vocabulary : {2, 4, 30}) {
    NgramDrafter drafter;
    Tokens tokens;
    for (int i = 0; i < 600; ++i) {
      tokens.push_back(static_cast<TokenId>(random() % static_cast<uint32_t>(vocabulary)));
      drafter.append(tokens.back());
      BOOST_TEST_REQUIRE(drafter.draft(6) == plain_draft(tokens, 6));
    }
  }
}

BOOST_AUTO_TEST_CASE(right_guesses_make_longer_ones_and_wrong_guesses_none) {
  DraftPace pace;
  for (int i = 0; i < 20; ++i) pace.on_result(4, 4);
  BOOST_TEST(pace.next_length(0.2) == kDraftTokensMax);
  for (int i = 0; i < 20; ++i) pace.on_result(4, 0);
  BOOST_TEST(pace.next_length(0.2) == 0U);
}

BOOST_AUTO_TEST_CASE(a_dear_row_makes_guesses_shorter) {
  DraftPace pace;
  BOOST_TEST(pace.next_length(0.1) > pace.next_length(0.4));
  BOOST_TEST(pace.next_length(1.0) == 0U);
}

BOOST_AUTO_TEST_CASE(guessing_that_does_not_pay_is_tried_again_now_and_then) {
  DraftPace pace;
  for (int i = 0; i < 50; ++i) pace.on_result(1, 0);
  uint32_t guesses = 0;
  for (uint32_t i = 0; i < 4 * kDraftProbeEvery; ++i) guesses += pace.next_length(0.2);
  BOOST_TEST(guesses == 4U);
}

BOOST_AUTO_TEST_CASE(what_follows_a_wrong_guess_is_not_held_against_it) {
  DraftPace one, eight;
  one.on_result(1, 0);
  eight.on_result(8, 0);
  BOOST_TEST(one.acceptance() == eight.acceptance());
}

BOOST_AUTO_TEST_CASE(the_cost_of_a_row_is_learned_from_steps_of_different_sizes) {
  RowCost cost;
  BOOST_TEST(cost.of(1) > 0.0);
  for (int i = 0; i < 200; ++i) {
    const uint32_t rows = 1 + static_cast<uint32_t>(i) % 4;
    cost.on_step(rows, 0.009 + 0.001 * rows);
  }
  BOOST_TEST(cost.of(1) == 0.1, boost::test_tools::tolerance(0.01));
  BOOST_TEST(cost.of(11) == 0.05, boost::test_tools::tolerance(0.01));
}

BOOST_AUTO_TEST_CASE(rows_that_look_free_by_noise_still_cost_something) {
  RowCost cost;
  for (int i = 0; i < 50; ++i)
    cost.on_step(1 + static_cast<uint32_t>(i) % 2, 0.01 - 0.001 * (i % 2));
  BOOST_TEST(cost.of(1) > 0.0);
}

BOOST_AUTO_TEST_SUITE_END()
