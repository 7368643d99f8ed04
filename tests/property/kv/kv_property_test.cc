// Random traffic over scheduler, KV-cache manager and device; see serving_world.h for the oracles.

#include <boost/test/unit_test.hpp>
#include <string>

#include "engine/kv/window.h"
#include "tests/property/kv/serving_world.h"

namespace troupe {
namespace {

struct Traffic {
  uint32_t requests;
  uint32_t prompt_tokens_max;
  uint32_t output_tokens_max;
  uint32_t documents;       // prompts begin with one of so many texts
  uint32_t cancel_percent;  // per delivery
  uint32_t score_percent;
  uint32_t pool_percent;
  uint32_t salts;
};

std::vector<TokenId> draw_prompt(TestRng& rng, const Traffic& traffic,
                                 const std::vector<std::vector<TokenId>>& documents) {
  const auto& document = documents[rng.below(traffic.documents)];
  const uint32_t shared = rng.between(0, traffic.prompt_tokens_max);
  std::vector<TokenId> prompt(document.begin(), document.begin() + shared);
  const uint32_t own = rng.chance(40) ? 0 : rng.between(0, 20);
  for (uint32_t i = 0; i < own; ++i) prompt.push_back(static_cast<TokenId>(rng.below(3)));
  if (prompt.empty()) prompt.push_back(1);
  return prompt;
}

SamplingParams draw_params(TestRng& rng, const Traffic& traffic) {
  SamplingParams params;
  params.max_tokens = rng.between(1, traffic.output_tokens_max);
  params.seed = rng.below(3);
  params.ignore_eos = rng.chance(30);
  if (rng.chance(20)) params.min_tokens = rng.between(0, params.max_tokens);
  if (rng.chance(20)) params.stop_token_ids = {static_cast<TokenId>(rng.below(40))};
  if (rng.chance(20)) params.frequency_penalty = 1.0F;
  if (rng.chance(traffic.score_percent)) {
    params.prompt_logprobs = 0;
    if (rng.chance(50)) params.score_from = rng.between(1, traffic.prompt_tokens_max + 1);
    if (rng.chance(50)) params.max_tokens = 0;
  } else if (rng.chance(traffic.pool_percent)) {
    params.pooling = rng.chance(70) ? Pooling::kMean : Pooling::kLast;
    params.max_tokens = params.min_tokens = 0;
  }
  return params;
}

WorldOptions draw_world(TestRng& rng) {
  WorldOptions options;
  options.blocks = rng.chance(50) ? rng.between(1, 12) : rng.between(8, 60);
  options.context_tokens = rng.chance(30) ? rng.between(20, 120) : 2048;
  options.copy_tokens_min = rng.chance(20) ? rng.between(1, 16) : 1;
  options.colliding_hashes = rng.chance(10);
  static constexpr uint32_t kBudgets[] = {1, 2, 7, 15, 16, 17, 64, 512};
  options.scheduler.step_tokens_max = kBudgets[rng.below(8)];
  options.scheduler.running_max = rng.chance(30) ? rng.between(1, 3) : 16;
  options.scheduler.passes_max = rng.between(0, 4);
  if (rng.chance(30)) options.scheduler.guesses_max = rng.between(0, 2);
  return options;
}

// Windows of all lengths, also odd ones, and pools of windowed blocks that just do.
void draw_window(TestRng& rng, WorldOptions& options) {
  options.window = rng.chance(20) ? rng.between(1, 4) : rng.between(1, 70);
  const uint32_t ahead = std::max(kExtendAheadTokens, options.scheduler.guesses_max);
  const uint32_t least = window_blocks_needed(options.window, ahead);
  options.window_blocks = rng.chance(50) ? least + rng.below(4) : rng.between(1, 60);
}

struct Seen {
  uint64_t preemptions = 0, evictions = 0, hits = 0, copies = 0, ended = 0, refused = 0,
           cancelled = 0, deferred = 0, guesses = 0, right = 0, window_evictions = 0,
           passed_windows = 0;
};

void run_seed(uint64_t seed, bool windowed, Seen& seen) {
  TestRng rng(seed);
  WorldOptions options = draw_world(rng);
  Traffic traffic{.requests = rng.between(1, 24),
                  .prompt_tokens_max = rng.between(0, 100),
                  .output_tokens_max = rng.between(1, 60),
                  .documents = rng.between(1, 3),
                  .cancel_percent = rng.chance(50) ? 0 : rng.between(1, 5),
                  .score_percent = rng.chance(50) ? 0 : rng.between(1, 60),
                  .pool_percent = rng.chance(50) ? 0 : rng.between(1, 60),
                  .salts = rng.between(1, 2)};
  if (rng.chance(30)) {
    // Easy to admit and hard to keep: this is where sequences take blocks from each other.
    options.blocks = rng.between(4, 10);
    traffic.prompt_tokens_max = rng.between(0, 20);
    traffic.output_tokens_max = rng.between(40, 100);
  }
  if (windowed) draw_window(rng, options);
  ServingWorld world(options, rng.next());
  std::vector<std::vector<TokenId>> documents(3);
  for (auto& document : documents)
    for (int i = 0; i < 100; ++i) document.push_back(static_cast<TokenId>(rng.below(5)));

  uint32_t left = traffic.requests;
  const uint32_t add_percent = rng.between(5, 100);
  for (uint32_t turn = 0; turn < 200'000; ++turn) {
    if (left > 0 && rng.chance(add_percent)) {
      --left;
      std::optional<TimePoint> deadline;
      if (rng.chance(20)) deadline = TimePoint{} + std::chrono::milliseconds(rng.below(90'000));
      const Status status =
          world.add(draw_prompt(rng, traffic, documents), draw_params(rng, traffic),
                    std::string(rng.below(traffic.salts), 's'), deadline);
      if (!status.ok()) BOOST_TEST_REQUIRE((status.code() == StatusCode::kContextLength));
      seen.refused += status.ok() ? 0 : 1;
      world.advance(std::chrono::milliseconds(rng.below(1000)));
      continue;
    }
    if (rng.chance(traffic.cancel_percent))
      world.cancel(SequenceId{rng.between(1, traffic.requests)});
    seen.deferred += world.manager().stats().reserves_deferred > 0 ? 1 : 0;
    if (!world.deliver_one() && left == 0) break;
  }
  BOOST_TEST_REQUIRE(left == 0U);
  world.run();
  seen.preemptions += world.scheduler().stats().preemptions;
  seen.guesses += world.scheduler().stats().guessed_tokens;
  seen.right += world.scheduler().stats().right_tokens;
  seen.evictions += world.manager().stats().evictions;
  seen.hits += world.manager().stats().prefix_hit_tokens;
  seen.window_evictions += world.manager().stats().window_evictions;
  seen.passed_windows += world.device().passed_windows();
  seen.copies += world.device().copies();
  for (const auto& [id, client] : world.clients())
    ++(client.cancelled ? seen.cancelled : seen.ended);
}

Seen run_seeds(bool windowed) {
  Seen seen;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    BOOST_TEST_CHECKPOINT("seed " << seed);
    BOOST_TEST_CONTEXT("seed " << seed) {
      run_seed(seed, windowed, seen);
    }
  }
  BOOST_TEST_MESSAGE("ended " << seen.ended << ", cancelled " << seen.cancelled << ", refused "
                              << seen.refused << ", preemptions " << seen.preemptions
                              << ", evictions " << seen.evictions << ", hit tokens " << seen.hits
                              << ", copies " << seen.copies << ", turns with a deferred reserve "
                              << seen.deferred << ", guessed tokens " << seen.guesses << ", right "
                              << seen.right << ", windowed evictions " << seen.window_evictions
                              << ", slices behind a window " << seen.passed_windows);
  // The traffic reaches what it is there to test.
  BOOST_TEST(seen.preemptions > 400U);
  BOOST_TEST(seen.evictions > 1000U);
  BOOST_TEST(seen.hits > 10'000U);
  BOOST_TEST(seen.copies > 100U);
  BOOST_TEST(seen.deferred > 1000U);
  BOOST_TEST(seen.right > 1000U);
  BOOST_TEST(seen.guesses > seen.right + 1000U);
  BOOST_TEST(seen.cancelled > 100U);
  BOOST_TEST(seen.refused > 100U);
  return seen;
}

BOOST_AUTO_TEST_CASE(any_interleaving_gives_every_request_the_tokens_it_would_get_alone) {
  const Seen seen = run_seeds(false);
  BOOST_TEST(seen.passed_windows == 0U);
}

BOOST_AUTO_TEST_CASE(the_same_holds_where_layers_with_a_window_keep_no_more_than_it_sees) {
  const Seen seen = run_seeds(true);
  BOOST_TEST(seen.window_evictions > 1000U);
  BOOST_TEST(seen.passed_windows > 10'000U);
}

}  // namespace
}  // namespace troupe
