#include "engine/schedule/step_pace.h"

#include <boost/test/unit_test.hpp>

#include "engine/schedule/limits.h"

namespace troupe {
namespace {

using std::chrono::milliseconds;

constexpr uint32_t kMost = 512;

StepPace learned(milliseconds wanted, uint32_t tokens, milliseconds took) {
  StepPace pace(wanted, kMost);
  pace.on_step(tokens, took);
  return pace;
}

BOOST_AUTO_TEST_CASE(a_pace_without_a_wish_gives_every_step_all_there_is_room_for) {
  const StepPace pace = learned(milliseconds(0), 512, milliseconds(512));
  BOOST_TEST(pace.prompt_tokens(0, {1, 2}) == kMost);
  BOOST_TEST(pace.prompt_tokens(100, {1, 2}) == kMost - 100);
}

BOOST_AUTO_TEST_CASE(the_first_steps_are_small_since_nobody_knows_how_long_they_take) {
  const StepPace pace(milliseconds(100), kMost);
  BOOST_TEST(pace.prompt_tokens(0, {1000, 2}) == kStepTokensLeast);
}

BOOST_AUTO_TEST_CASE(a_step_gets_what_its_time_allows_and_those_that_decode_count) {
  const StepPace pace = learned(milliseconds(200), 100, milliseconds(100));  // 1 ms a token
  BOOST_TEST(pace.prompt_tokens(0, {1000, 2}) == 200U);
  BOOST_TEST(pace.prompt_tokens(40, {1000, 2}) == 160U);
}

BOOST_AUTO_TEST_CASE(a_prompt_alone_may_take_longer_but_not_without_end) {
  const StepPace pace = learned(milliseconds(100), 100, milliseconds(100));
  BOOST_TEST(pace.prompt_tokens(0, {1000, 1}) == 100U * kTimesAlone);
  BOOST_TEST(pace.prompt_tokens(0, {1000, 2}) == 100U);
  BOOST_TEST(pace.prompt_tokens(1, {1000, 1}) == 99U);
}

BOOST_AUTO_TEST_CASE(prompts_go_on_however_slow_the_device_and_however_many_decode) {
  const StepPace slow = learned(milliseconds(100), 100, milliseconds(5000));
  BOOST_TEST(slow.prompt_tokens(0, {1000, 2}) == kStepTokensLeast);
  BOOST_TEST(slow.prompt_tokens(300, {1000, 2}) == kStepTokensLeast);
  // Only the room in the step ends that.
  BOOST_TEST(slow.prompt_tokens(kMost - 10, {1000, 2}) == 10U);
  BOOST_TEST(slow.prompt_tokens(kMost, {1000, 2}) == 0U);
}

BOOST_AUTO_TEST_CASE(many_waiting_prompts_make_steps_longer_up_to_the_most) {
  const StepPace pace = learned(milliseconds(100), 100, milliseconds(100));
  BOOST_TEST(pace.prompt_tokens(0, {100 * kStepsOfQueue, 2}) == 100U);
  BOOST_TEST(pace.prompt_tokens(0, {300 * kStepsOfQueue, 2}) == 300U);
  BOOST_TEST(pace.prompt_tokens(0, {10000 * uint64_t{kStepsOfQueue}, 2}) == kMost);
}

BOOST_AUTO_TEST_CASE(small_steps_teach_nothing_and_a_changed_device_is_noticed) {
  StepPace pace = learned(milliseconds(100), 100, milliseconds(100));
  for (int i = 0; i < 100; ++i) pace.on_step(1, milliseconds(50));
  BOOST_TEST(pace.prompt_tokens(0, {1, 2}) == 100U);
  // One step that was held up does not count for all of the next ones …
  pace.on_step(100, milliseconds(200));
  BOOST_TEST(pace.prompt_tokens(0, {1, 2}) == 80U);
  // … but many do, and so does a device that has become faster.
  for (int i = 0; i < 40; ++i) pace.on_step(100, milliseconds(20));
  BOOST_TEST(pace.prompt_tokens(0, {1, 2}) > 490U);
}

}  // namespace
}  // namespace troupe
