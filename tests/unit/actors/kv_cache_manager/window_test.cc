// Blocks of layers with a window: what a sequence holds of them, what stays in the tree, and which
// prefixes are found then.

#include <boost/test/unit_test.hpp>
#include <numeric>

#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "engine/kv/window.h"

namespace troupe {
namespace {

constexpr uint32_t kWindow = 32;
constexpr uint32_t kStep = 32;
constexpr uint32_t kPromised = window_blocks_needed(kWindow, kStep);
constexpr uint32_t kLater = window_blocks_needed(kWindow, 1);

std::vector<TokenId> tokens_from(TokenId first, size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

struct Manager {
  explicit Manager(uint32_t window_blocks, uint32_t blocks = 200)
      : core({.blocks = blocks, .window = kWindow, .window_blocks = window_blocks}, hasher) {}

  KvReserve request(uint64_t id, std::vector<TokenId> tokens) {
    KvReserve reserve;
    reserve.sequence = SequenceId{id};
    reserve.cover_tokens = static_cast<uint32_t>(tokens.size());
    reserve.tokens = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
    reserve.window_blocks = kPromised;
    reserve.window_blocks_later = kLater;
    return reserve;
  }
  void send(const KvRequest& message) {
    core.on_requests({&message, 1}, replies);
    core.check_invariants();
  }
  void commit(uint64_t id, uint32_t computed) {
    KvCommit commit;
    commit.items = {{.sequence = SequenceId{id}, .computed = computed, .tokens = {}}};
    send(commit);
  }
  template <class Reply>
  Reply take() {
    BOOST_TEST_REQUIRE(!replies.empty());
    BOOST_TEST_REQUIRE(std::holds_alternative<Reply>(replies.front()));
    Reply reply = std::get<Reply>(replies.front());
    replies.erase(replies.begin());
    return reply;
  }
  KvReserved reserve(uint64_t id, std::vector<TokenId> tokens) {
    send(request(id, std::move(tokens)));
    return take<KvReserved>();
  }
  // Computes everything in steps; what is handed out meanwhile is not looked at.
  void compute(uint64_t id, uint32_t from, uint32_t to) {
    for (uint32_t done = std::min(from + kStep, to); done < to; done += kStep) commit(id, done);
    commit(id, to);
    replies.clear();
  }
  void release(uint64_t id) { send(KvRelease{SequenceId{id}}); }
  uint32_t warm(uint64_t id, const std::vector<TokenId>& tokens) {
    const KvReserved reply = reserve(id, tokens);
    compute(id, reply.cached_tokens, static_cast<uint32_t>(tokens.size()));
    release(id);
    return reply.cached_tokens;
  }
  uint32_t in_use() const {
    const KvBlockCounts window = core.stats().window;
    return window.total - window.free - window.cached;
  }

  Xxh3BlockHasher hasher{3};
  KvCacheManagerCore core;
  std::vector<KvReply> replies;
};

BOOST_AUTO_TEST_SUITE(windowed_blocks)

BOOST_AUTO_TEST_CASE(a_sequence_holds_what_its_rows_see_and_what_two_steps_fill) {
  Manager manager(20);
  const KvReserved reply = manager.reserve(1, tokens_from(0, 160));
  BOOST_TEST(reply.window_first == 0U);
  BOOST_TEST(reply.window_blocks.size() == kPromised);
  manager.commit(1, 32);
  BOOST_TEST(manager.replies.empty());  // a row at 32 sees token 1
  manager.commit(1, 64);
  const auto more = manager.take<KvWindow>();
  BOOST_TEST(more.first_index == kPromised);
  BOOST_TEST(more.blocks.size() == 2U);
  BOOST_TEST(manager.in_use() == kPromised);
  BOOST_TEST(manager.core.stats().window.cached == 2U);
  BOOST_TEST(manager.core.stats().window.held == 2U);  // of tokens 32 to 63
  manager.commit(1, 128);
  BOOST_TEST(manager.take<KvWindow>().blocks.size() == 1U);  // that is the prompt's last block
  manager.commit(1, 160);
  BOOST_TEST(manager.replies.empty());
  BOOST_TEST(manager.in_use() == 2U);
  BOOST_TEST(manager.core.stats().window_promised == kLater);
  // Blocks for what is generated bring their windowed ones.
  manager.send(KvExtend{.number = 1, .items = {{SequenceId{1}, 11}}});
  BOOST_TEST(manager.take<KvExtended>().grants.size() == 1U);
  BOOST_TEST(manager.take<KvWindow>().first_index == 10U);
  manager.release(1);
  BOOST_TEST(manager.in_use() == 0U);
  BOOST_TEST(manager.core.stats().window_promised == 0U);
  BOOST_TEST(manager.core.stats().window.cached == 10U);
}

BOOST_AUTO_TEST_CASE(a_prefix_is_found_with_the_windowed_blocks_before_its_end_alone) {
  Manager manager(20);
  manager.warm(1, tokens_from(0, 160));
  const KvReserved again = manager.reserve(2, tokens_from(0, 161));
  BOOST_TEST(again.cached_tokens == 160U);
  BOOST_TEST(again.window_first == 8U);
  BOOST_TEST(again.window_blocks.size() == 3U);
  BOOST_TEST(manager.in_use() == 3U);
}

BOOST_AUTO_TEST_CASE(a_prefix_whose_window_is_lost_is_computed_again_and_found_again) {
  Manager manager(kPromised + 1);
  manager.warm(1, tokens_from(0, 160));
  // Another one takes all windowed blocks that are not in use, so also those of the first one.
  manager.warm(2, tokens_from(1000, 160));
  BOOST_TEST(manager.core.stats().blocks_cached == 20U);
  BOOST_TEST(manager.core.stats().window_evictions > 0U);
  BOOST_TEST(manager.warm(3, tokens_from(0, 161)) == 0U);
  // What is computed anew takes the place of the old.
  BOOST_TEST(manager.core.stats().blocks_cached == 20U);
  BOOST_TEST(manager.warm(4, tokens_from(0, 161)) == 160U);
}

BOOST_AUTO_TEST_CASE(a_prefix_is_cut_back_to_where_the_window_is_whole) {
  Manager manager(kPromised + 3);
  manager.warm(1, tokens_from(0, 48));
  // Two of the three blocks before the end of the shared part are still there in the end.
  auto longer = tokens_from(0, 48);
  const auto rest = tokens_from(500, 100);
  longer.insert(longer.end(), rest.begin(), rest.end());
  BOOST_TEST(manager.warm(2, longer) == 48U);
  // The second one's use keeps the shared blocks from going before those that it left behind.
  BOOST_TEST(manager.warm(3, tokens_from(0, 48)) == 47U);
}

BOOST_AUTO_TEST_CASE(who_can_not_be_promised_enough_is_refused_and_nothing_changes) {
  Manager manager(2 * kPromised - 1);
  manager.reserve(1, tokens_from(0, 160));
  const KvStats before = manager.core.stats();
  manager.send(manager.request(2, tokens_from(1000, 160)));
  const auto refused = manager.take<KvRefused>();
  BOOST_TEST(refused.window_needed == kPromised);
  BOOST_TEST(refused.window_available == kPromised - 1);
  BOOST_TEST(refused.blocks_needed <= refused.blocks_available);
  KvStats after = manager.core.stats();
  after.sequences = before.sequences;
  BOOST_TEST((after == before));
  // The first one needs less as soon as its prompt is computed.
  manager.compute(1, 0, 160);
  KvReserve later = manager.request(2, tokens_from(1000, 160));
  later.attempt = 2;
  manager.send(later);
  manager.take<KvReserved>();
}

BOOST_AUTO_TEST_CASE(a_trimmed_sequence_gives_all_its_windowed_blocks_back) {
  Manager manager(20);
  manager.reserve(1, tokens_from(0, 160));
  manager.compute(1, 0, 96);
  manager.send(KvTrim{.sequence = SequenceId{1}, .keep_blocks = 6});
  BOOST_TEST(manager.in_use() == 0U);
  BOOST_TEST(manager.core.stats().window_promised == 0U);
  BOOST_TEST(manager.core.stats().blocks_held == 6U);
  KvReserve again = manager.request(1, tokens_from(0, 160));
  again.attempt = 2;
  manager.send(again);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 96U);
}

BOOST_AUTO_TEST_CASE(a_copied_block_brings_its_windowed_one) {
  Manager manager(20);
  auto tokens = tokens_from(0, 64);
  manager.warm(1, tokens);
  tokens[40] = -1;
  const KvReserved reply = manager.reserve(2, tokens);
  BOOST_TEST(reply.cached_tokens == 40U);
  BOOST_TEST_REQUIRE(reply.copy.has_value());
  const BlockPool& pool = *manager.core.window_pool();
  BOOST_TEST(to_string(pool.state(reply.copy->window_from)) == "held");
  BOOST_TEST(to_string(pool.state(reply.copy->window_to)) == "computing");
  BOOST_TEST(reply.copy->window_to.value == reply.window_blocks[2 - reply.window_first].value);
  BOOST_TEST(manager.core.stats().window_promised == kPromised + 1);
  manager.commit(2, 64);
  BOOST_TEST(to_string(pool.state(reply.copy->window_from)) == "cached");
}

BOOST_AUTO_TEST_CASE(what_comes_from_elsewhere_comes_with_the_window_before_its_end) {
  Manager manager(20);
  manager.warm(1, tokens_from(0, 32));
  KvReserve request = manager.request(2, tokens_from(0, 160));
  request.import_tokens = 159;
  request.import_below = 100;
  manager.send(request);
  const auto reply = manager.take<KvReserved>();
  BOOST_TEST(reply.cached_tokens == 32U);
  BOOST_TEST(reply.window_first == 7U);
  BOOST_TEST(reply.window_blocks.size() == 3U);
  manager.send(KvLease{.sequence = SequenceId{2}, .first_block = 2});
  BOOST_TEST(manager.core.stats().window.leased == 3U);
  manager.send(KvEndLease{SequenceId{2}});
  manager.commit(2, 159);
  manager.commit(2, 160);
  manager.release(2);
  BOOST_TEST(manager.in_use() == 0U);
  // Found again where the window is whole: at the end, and where the first sequence was.
  BOOST_TEST(manager.warm(3, tokens_from(0, 161)) == 160U);
  auto other = tokens_from(0, 100);
  other[33] = -1;
  BOOST_TEST(manager.warm(4, other) == 32U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace troupe
