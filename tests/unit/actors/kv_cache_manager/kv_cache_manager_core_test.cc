#include "actors/kv_cache_manager/kv_cache_manager_core.h"

#include <boost/test/unit_test.hpp>
#include <numeric>

namespace troupe {
namespace {

std::vector<TokenId> tokens_from(TokenId first, size_t count) {
  std::vector<TokenId> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

// One manager and the replies that it has sent.
struct Manager {
  explicit Manager(uint32_t blocks) : core({.blocks = blocks}, hasher) {}

  KvReserve request(uint64_t id, std::vector<TokenId> tokens) {
    KvReserve reserve;
    reserve.sequence = SequenceId{id};
    reserve.cover_tokens = static_cast<uint32_t>(tokens.size());
    reserve.tokens = std::make_shared<const std::vector<TokenId>>(std::move(tokens));
    return reserve;
  }
  void send(const KvRequest& message) {
    core.on_requests({&message, 1}, replies);
    core.check_invariants();
  }
  void commit(uint64_t id, uint32_t computed, uint32_t first = 0, std::vector<TokenId> more = {}) {
    send(KvCommit{.items = {{.sequence = SequenceId{id},
                             .computed = computed,
                             .first_position = first,
                             .tokens = std::move(more)}}});
  }
  void release(uint64_t id) { send(KvRelease{SequenceId{id}}); }
  // The next reply, which must be of this kind.
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
  // A sequence that came, computed everything and left: its full blocks are cached now.
  void warm(uint64_t id, const std::vector<TokenId>& tokens) {
    reserve(id, tokens);
    commit(id, static_cast<uint32_t>(tokens.size()));
    release(id);
  }

  Xxh3BlockHasher hasher{3};
  KvCacheManagerCore core;
  std::vector<KvReply> replies;
};

BOOST_AUTO_TEST_CASE(a_second_request_reuses_the_full_blocks_of_the_first) {
  Manager manager(16);
  manager.warm(1, tokens_from(0, 40));
  BOOST_TEST(manager.core.stats().blocks_cached == 2U);
  const KvReserved again = manager.reserve(2, tokens_from(0, 40));
  BOOST_TEST(again.cached_tokens == 32U);
  BOOST_TEST(again.blocks.size() == 3U);
  BOOST_TEST(!again.copy);
  const KvStats stats = manager.core.stats();
  BOOST_TEST(stats.prefix_query_tokens == 80U);
  BOOST_TEST(stats.prefix_hit_tokens == 32U);
  BOOST_TEST(stats.blocks_held == 2U);
}

BOOST_AUTO_TEST_CASE(a_wholly_cached_prompt_still_computes_its_last_token_into_a_block_of_its_own) {
  Manager manager(16);
  manager.warm(1, tokens_from(0, 32));
  const KvReserved again = manager.reserve(2, tokens_from(0, 32));
  BOOST_TEST(again.cached_tokens == 31U);
  BOOST_TEST_REQUIRE(again.copy.has_value());
  BOOST_TEST(again.copy->to.value == again.blocks[1].value);
  BOOST_TEST(again.copy->from.value != again.copy->to.value);
  BOOST_TEST(to_string(manager.core.pool().state(again.copy->from)) == "held");
  BOOST_TEST(to_string(manager.core.pool().state(again.copy->to)) == "computing");
  manager.commit(2, 32);
  // The source is let go; nobody uses the old copy, so the new one takes its place in the tree.
  BOOST_TEST(to_string(manager.core.pool().state(again.copy->from)) == "free");
  manager.release(2);
  BOOST_TEST(manager.core.stats().blocks_cached == 2U);
}

BOOST_AUTO_TEST_CASE(a_block_that_begins_alike_is_reused_by_copy) {
  Manager manager(16);
  auto other = tokens_from(0, 32);
  manager.warm(1, other);
  other[21] = -1;
  const KvReserved reply = manager.reserve(2, other);
  BOOST_TEST(reply.cached_tokens == 21U);
  BOOST_TEST_REQUIRE(reply.copy.has_value());
  BOOST_TEST(reply.copy->to.value == reply.blocks[1].value);
}

BOOST_AUTO_TEST_CASE(the_copys_source_is_given_up_when_it_is_the_block_that_is_missing) {
  Manager manager(2);
  manager.warm(1, tokens_from(0, 32));
  const KvReserved again = manager.reserve(2, tokens_from(0, 32));
  BOOST_TEST(again.cached_tokens == 16U);
  BOOST_TEST(!again.copy);
  BOOST_TEST(manager.core.stats().evictions == 1U);
}

BOOST_AUTO_TEST_CASE(a_prefix_being_computed_is_waited_for_and_not_computed_twice) {
  Manager manager(64);
  manager.reserve(1, tokens_from(0, 160));
  for (uint64_t id = 2; id <= 4; ++id) manager.send(manager.request(id, tokens_from(0, 160)));
  BOOST_TEST(manager.replies.empty());
  BOOST_TEST(manager.core.stats().reserves_deferred == 3U);
  BOOST_TEST(manager.core.stats().blocks_computing == 10U);
  manager.commit(1, 80);
  BOOST_TEST(manager.replies.empty());  // the rest is still being computed
  manager.commit(1, 160);
  for (uint64_t id = 2; id <= 4; ++id) {
    const auto reply = manager.take<KvReserved>();
    BOOST_TEST(reply.sequence.value == id);
    BOOST_TEST(reply.cached_tokens == 159U);
  }
  BOOST_TEST(manager.core.stats().blocks_computing == 3U);
}

BOOST_AUTO_TEST_CASE(when_the_computing_sequence_leaves_the_first_one_waiting_takes_over) {
  Manager manager(64);
  manager.reserve(1, tokens_from(0, 100));
  manager.send(manager.request(2, tokens_from(0, 100)));
  manager.send(manager.request(3, tokens_from(0, 100)));
  manager.commit(1, 40);
  manager.release(1);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 32U);
  BOOST_TEST(manager.replies.empty());
  BOOST_TEST(manager.core.stats().reserves_deferred == 1U);
  manager.send(KvTrim{.sequence = SequenceId{2}, .keep_blocks = 2});
  const auto third = manager.take<KvReserved>();
  BOOST_TEST(third.sequence.value == 3U);
  BOOST_TEST(third.cached_tokens == 32U);
}

BOOST_AUTO_TEST_CASE(a_waiting_reserve_can_be_cancelled) {
  Manager manager(64);
  manager.reserve(1, tokens_from(0, 100));
  manager.send(manager.request(2, tokens_from(0, 100)));
  manager.release(2);
  manager.commit(1, 100);
  BOOST_TEST(manager.replies.empty());
  BOOST_TEST(manager.core.stats().sequences == 1U);
  manager.release(1);
  BOOST_TEST(manager.core.stats().blocks_free + manager.core.stats().blocks_cached == 64U);
}

BOOST_AUTO_TEST_CASE(salts_isolate_also_what_is_being_computed) {
  Manager manager(64);
  manager.reserve(1, tokens_from(0, 32));
  KvReserve salted = manager.request(2, tokens_from(0, 32));
  salted.cache_salt = "tenant";
  manager.send(salted);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 0U);
  manager.commit(1, 32);
  manager.commit(2, 32);
  salted.sequence = SequenceId{3};
  manager.send(salted);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 31U);
}

BOOST_AUTO_TEST_CASE(with_reuse_off_nothing_is_reused_and_nothing_is_waited_for) {
  Manager manager(64);
  manager.warm(1, tokens_from(0, 48));
  manager.reserve(2, tokens_from(500, 48));
  for (const TokenId first : {0, 500}) {
    KvReserve scored = manager.request(static_cast<uint64_t>(first) + 10, tokens_from(first, 48));
    scored.reuse_tokens_max = 0;
    manager.send(scored);
    const auto reply = manager.take<KvReserved>();
    BOOST_TEST(reply.cached_tokens == 0U);
    BOOST_TEST(!reply.copy);
  }
  KvReserve partly = manager.request(99, tokens_from(0, 48));
  partly.reuse_tokens_max = 20;
  manager.send(partly);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 20U);
}

BOOST_AUTO_TEST_CASE(generated_blocks_enter_the_tree_too) {
  Manager manager(64);
  manager.reserve(1, tokens_from(0, 20));
  manager.commit(1, 20);
  manager.send(KvExtend{.items = {{.sequence = SequenceId{1}, .blocks = 3}}});
  BOOST_TEST(manager.take<KvExtended>().grants.at(0).blocks.size() == 1U);
  manager.commit(1, 32, 20, tokens_from(20, 12));
  manager.commit(1, 32, 20, tokens_from(20, 12));  // repeated
  manager.commit(1, 48, 32, tokens_from(32, 16));
  manager.release(1);
  BOOST_TEST(manager.reserve(2, tokens_from(0, 60)).cached_tokens == 48U);
}

BOOST_AUTO_TEST_CASE(eviction_takes_the_least_recently_used_leaf) {
  Manager manager(6);
  manager.warm(1, tokens_from(0, 32));     // blocks A0 A1
  manager.warm(2, tokens_from(1000, 32));  // blocks B0 B1
  manager.reserve(3, tokens_from(0, 17));  // uses A0
  manager.release(3);
  manager.warm(4, tokens_from(2000, 48));  // evicts one: A1, whose last use is the longest ago
  BOOST_TEST(manager.core.stats().evictions == 1U);
  KvReserve probe = manager.request(5, tokens_from(0, 32));
  manager.send(probe);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 16U);
}

BOOST_AUTO_TEST_CASE(a_refusal_changes_nothing_and_names_both_numbers) {
  Manager manager(4);
  manager.warm(1, tokens_from(0, 32));
  manager.reserve(2, tokens_from(1000, 32));
  const KvStats before = manager.core.stats();
  manager.send(manager.request(3, tokens_from(0, 70)));
  const auto refused = manager.take<KvRefused>();
  BOOST_TEST(refused.blocks_needed == 3U);     // two of five are cached
  BOOST_TEST(refused.blocks_available == 0U);  // and are not there to be evicted
  KvStats after = manager.core.stats();
  after.sequences = before.sequences;
  BOOST_TEST((before == after));
}

BOOST_AUTO_TEST_CASE(spare_blocks_are_left_for_those_who_run) {
  Manager manager(4);
  KvReserve request = manager.request(1, tokens_from(0, 48));
  request.spare_blocks = 2;
  manager.send(request);
  manager.take<KvRefused>();
  request.spare_blocks = 1;
  request.attempt = 2;
  manager.send(request);
  manager.take<KvReserved>();
}

BOOST_AUTO_TEST_CASE(a_trimmed_tail_is_found_again_unless_it_was_needed) {
  Manager manager(6);
  manager.reserve(1, tokens_from(0, 80));
  manager.commit(1, 80);
  manager.send(KvTrim{.sequence = SequenceId{1}, .keep_blocks = 2});
  BOOST_TEST(manager.core.stats().blocks_held == 2U);
  BOOST_TEST(manager.core.stats().blocks_cached == 3U);
  manager.reserve(2, tokens_from(1000, 32));  // takes the free block and the tail's last one
  KvReserve back = manager.request(1, tokens_from(0, 70));
  back.attempt = 2;
  manager.send(back);
  manager.take<KvRefused>();
  BOOST_TEST(manager.core.stats().blocks_held == 2U);  // it keeps what it kept
  manager.release(2);
  back.attempt = 3;
  manager.send(back);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 64U);
}

BOOST_AUTO_TEST_CASE(repeated_and_unknown_messages_are_harmless) {
  Manager manager(8);
  const KvReserve request = manager.request(1, tokens_from(0, 40));
  manager.send(request);
  manager.send(request);
  manager.take<KvReserved>();
  BOOST_TEST(manager.replies.empty());
  const KvExtend extend{.items = {{.sequence = SequenceId{1}, .blocks = 4}}};
  manager.send(extend);
  BOOST_TEST(manager.take<KvExtended>().grants.at(0).blocks.size() == 1U);
  manager.send(extend);
  BOOST_TEST(manager.take<KvExtended>().grants.at(0).blocks.empty());
  manager.commit(77, 16);
  manager.send(KvTrim{.sequence = SequenceId{77}, .keep_blocks = 0});
  manager.release(77);
  manager.release(1);
  manager.release(1);
  BOOST_TEST(manager.core.stats().blocks_free == 8U);
}

BOOST_AUTO_TEST_CASE(leased_blocks_count_apart_and_are_committed_when_the_lease_has_ended) {
  Manager manager(16);
  const auto tokens = tokens_from(0, 100);
  manager.warm(1, tokens_from(0, 32));
  manager.reserve(2, tokens);
  manager.send(KvLease{.sequence = SequenceId{2}, .first_block = 2});
  manager.send(KvLease{.sequence = SequenceId{2}, .first_block = 2});  // repeated
  BOOST_TEST(manager.core.stats().blocks_leased == 5U);
  BOOST_TEST(manager.core.stats().blocks_computing == 0U);
  // Somebody else who wants the same prefix waits for it.
  manager.send(manager.request(3, tokens));
  BOOST_TEST(manager.core.stats().reserves_deferred == 1U);
  manager.send(KvEndLease{SequenceId{2}});
  manager.send(KvEndLease{SequenceId{2}});
  BOOST_TEST(manager.core.stats().blocks_leased == 0U);
  manager.commit(2, 99);
  BOOST_TEST(manager.take<KvReserved>().cached_tokens == 96U);
  manager.release(2);
  manager.release(3);
  BOOST_TEST(manager.core.stats().blocks_free + manager.core.stats().blocks_cached == 16U);
  manager.send(KvLease{.sequence = SequenceId{9}, .first_block = 0});  // unknown
  manager.send(KvEndLease{SequenceId{9}});
}

BOOST_AUTO_TEST_CASE(a_refused_extend_says_how_many_blocks_are_missing) {
  Manager manager(3);
  manager.reserve(1, tokens_from(0, 16));
  manager.reserve(2, tokens_from(1000, 16));
  manager.send(KvExtend{.items = {{.sequence = SequenceId{1}, .blocks = 2},
                                  {.sequence = SequenceId{2}, .blocks = 3}}});
  const auto answer = manager.take<KvExtended>();
  BOOST_TEST(answer.grants.size() == 1U);
  BOOST_TEST_REQUIRE(answer.refusals.size() == 1U);
  BOOST_TEST(answer.refusals[0].sequence.value == 2U);
  BOOST_TEST(answer.refusals[0].blocks_missing == 2U);
}

// --- every short history of three sequences over a small pool -----------------------------------

enum Step : int {
  kReserve,     // a prompt of 33 tokens, the same for sequences 1 and 2, another for 3
  kCommitHalf,  // 20 tokens
  kCommitAll,   // 33 tokens
  kExtendByOne,
  kTrimToOne,
  kRelease,
  kSteps
};

void replay(const std::vector<std::pair<int, uint64_t>>& history, uint32_t blocks) {
  Manager manager(blocks);
  std::map<uint64_t, uint32_t> attempts;
  std::map<uint64_t, uint32_t> asked, answered;
  for (const auto& [step, id] : history) {
    KvReserve reserve = manager.request(id, tokens_from(id == 3 ? 500 : 0, 33));
    switch (step) {
      case kReserve:
        reserve.attempt = ++attempts[id];
        ++asked[id];
        manager.send(reserve);
        break;
      case kCommitHalf:
        manager.commit(id, 20);
        break;
      case kCommitAll:
        manager.commit(id, 33);
        break;
      case kExtendByOne:
        manager.send(KvExtend{.items = {{.sequence = SequenceId{id}, .blocks = 4}}});
        manager.take<KvExtended>();
        break;
      case kTrimToOne:
        manager.send(KvTrim{.sequence = SequenceId{id}, .keep_blocks = 1});
        break;
      default:
        manager.release(id);
        break;
    }
    for (const KvReply& reply : manager.replies) {
      if (const auto* reserved = std::get_if<KvReserved>(&reply))
        ++answered[reserved->sequence.value];
      if (const auto* refused = std::get_if<KvRefused>(&reply)) ++answered[refused->sequence.value];
    }
    manager.replies.clear();
  }
  for (const auto& [id, count] : answered) BOOST_TEST_REQUIRE(count <= asked[id]);
  for (uint64_t id = 1; id <= 3; ++id) manager.release(id);
  const KvStats stats = manager.core.stats();
  BOOST_TEST_REQUIRE(stats.blocks_free + stats.blocks_cached == blocks);
  BOOST_TEST_REQUIRE(stats.sequences == 0U);
}

BOOST_AUTO_TEST_CASE(every_short_history_keeps_the_invariants_and_leaves_no_block_behind) {
  constexpr int kDepth = 4;
  constexpr int kChoices = kSteps * 3;
  for (const uint32_t blocks : {2U, 3U, 4U}) {
    for (int code = 0; code < kChoices * kChoices * kChoices * kChoices; ++code) {
      // The first step is a reserve, else nothing happens: five steps in all.
      std::vector<std::pair<int, uint64_t>> history{{kReserve, 1}};
      int rest = code;
      for (int i = 0; i < kDepth; ++i, rest /= kChoices)
        history.emplace_back(rest % kSteps, 1 + (rest % kChoices) / kSteps);
      replay(history, blocks);
    }
  }
}

BOOST_AUTO_TEST_CASE(an_idle_manager_looks_at_all_its_blocks_once_they_have_earned_it) {
  constexpr uint32_t kBlocks = 6;
  const Xxh3BlockHasher hasher{3};
  KvCacheManagerCore core({.blocks = kBlocks}, hasher);
  std::vector<KvReply> replies;
  const auto send = [&](const KvRequest& message) { core.on_requests({&message, 1}, replies); };
  const auto reserve = [&](uint64_t id) {
    KvReserve request;
    request.sequence = SequenceId{id};
    request.cover_tokens = kBlockTokens;
    request.tokens =
        std::make_shared<const std::vector<TokenId>>(tokens_from(static_cast<TokenId>(id), 16));
    send(request);
  };
  BOOST_TEST(!core.check_when_idle());  // nothing has come
  int looks = 0;
  for (uint64_t id = 1; id <= 9; ++id) {
    reserve(id);
    BOOST_TEST(!core.check_when_idle());  // busy
    send(KvRelease{SequenceId{id}});
    looks += core.check_when_idle() ? 1 : 0;
    BOOST_TEST(!core.check_when_idle());  // not again for nothing
  }
  BOOST_TEST(looks == 3);  // 18 batches, 6 blocks
  // While there is always somebody, it waits, and then looks at once.
  reserve(100);
  for (uint64_t id = 101; id < 120; ++id) {
    reserve(id);
    BOOST_TEST(!core.check_when_idle());
    send(KvRelease{SequenceId{id}});
    BOOST_TEST(!core.check_when_idle());
  }
  send(KvRelease{SequenceId{100}});
  BOOST_TEST(core.check_when_idle());
}

}  // namespace
}  // namespace troupe
