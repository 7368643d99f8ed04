#pragma once
// The KV-cache manager of one worker without its actor shell: owns the block pool and the radix
// tree, answers KvRequests. Single-threaded; no handler blocks; replies are appended to `out` in
// the order in which they are to be sent, and may concern other sequences than the request's.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/block_hash.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/eviction.h"
#include "engine/kv/kv_messages.h"
#include "engine/kv/radix_tree.h"
#include "engine/kv/window_blocks.h"

namespace troupe {

struct KvCacheManagerOptions {
  uint32_t blocks = 0;  // of the pool; ≥ 1
  // A cached block whose first j < 16 tokens match is reused by copy when j ≥ this. One token saved
  // is a pass through all weights, a copy moves one block: 1 pays on every device we know.
  uint32_t copy_tokens_min = 1;
  // Tokens that a row of the windowed layers sees, and the pool of their own blocks; 0 where they
  // have none.
  uint32_t window = 0;
  uint32_t window_blocks = 0;
};

// Reserves that wait for another sequence's prefix; beyond it a sequence computes its own.
inline constexpr size_t kDeferredReservesMax = 4096;

class KvCacheManagerCore {
 public:
  // `hasher` names block contents; it outlives this object.
  KvCacheManagerCore(const KvCacheManagerOptions& options, const BlockHasher& hasher);
  KvCacheManagerCore(const KvCacheManagerCore&) = delete;
  KvCacheManagerCore& operator=(const KvCacheManagerCore&) = delete;

  // A whole message: its requests in order.
  void on_requests(std::span<const KvRequest> requests, std::vector<KvReply>& out);

  void on_reserve(const KvReserve& request, std::vector<KvReply>& out);
  void on_extend(const KvExtend& request, std::vector<KvReply>& out);
  void on_commit(const KvCommit& request, std::vector<KvReply>& out);
  void on_trim(const KvTrim& request, std::vector<KvReply>& out);
  void on_release(const KvRelease& request, std::vector<KvReply>& out);
  void on_lease(const KvLease& request);
  void on_end_lease(const KvEndLease& request);

  [[nodiscard]] KvStats stats() const;  // O(1)
  // Aborts on the first broken invariant: every block has exactly one owner situation, every
  // reference is accounted for. O(blocks + held blocks); for tests and idle moments.
  void check_invariants() const;
  // An idle worker is the moment to look for blocks that were lost on the way. The look takes time
  // with the size of the pool, so it has to have been earned by as many batches of requests as
  // there are blocks: a large pool that is idle after every request is not looked through each
  // time. Returns whether it has looked.
  bool check_when_idle();

  [[nodiscard]] const BlockPool& pool() const { return pool_; }
  // Of the windowed layers; null where they have no blocks of their own.
  [[nodiscard]] const BlockPool* window_pool() const {
    return window_ ? &window_->pool() : nullptr;
  }

 private:
  // One place of a sequence's block table.
  struct Entry {
    BlockIndex block;
    // The tree's node of `block`, or null where the block is private. Claimed by this sequence
    // while the block is being computed, locked by it from then on.
    RadixNode* node = nullptr;
    // Of the windowed layers, in entries [window_first, window_end); the node's, if there is one
    // and the block is full.
    BlockIndex window = kNoBlock;
  };
  struct Sequence {
    std::vector<Entry> entries;
    uint32_t committed_blocks = 0;        // entries [0, committed_blocks) are full
    uint32_t attempt = 0;                 // of the last reserve
    bool deferred = false;                // that reserve waits in deferred_
    bool granted = false;                 // some reserve was
    std::optional<uint32_t> leased_from;  // entries from here on are leased to a transfer
    bool outside_tree = false;            // blocks from here on stay private, see KvCommit
    std::shared_ptr<const std::vector<TokenId>> known;  // of the last grant: positions [0, size)
    std::vector<TokenId> appended;                      // positions from known->size() on
    RadixNode* root = nullptr;                          // of its salt; acquired at the first grant
    RadixNode* copy_source = nullptr;  // locked until the first commit after the grant
    uint32_t window_first = 0, window_end = 0;
    uint32_t window_promised = 0;  // besides one for the copy's source
    uint32_t window_later = 0;     // when `covered` tokens are computed
    uint32_t covered = 0;          // by the last grant
  };
  struct Deferred {
    KvReserve request;
    RadixNode* waits_for = nullptr;  // null once that node is computed or given up
  };
  // What of a reserve's tokens is in the tree.
  struct Match {
    std::vector<RadixNode*> nodes;     // full blocks, computed
    RadixNode* claimed = nullptr;      // the next one, computed by another sequence now
    RadixNode* copy_source = nullptr;  // else: begins like the next one …
    uint32_t copy_tokens = 0;          // … for so many tokens
    uint32_t window_first = 0;         // nodes from here on give their windowed blocks, too
    [[nodiscard]] uint32_t cached_tokens() const {
      return static_cast<uint32_t>(nodes.size()) * kBlockTokens + copy_tokens;
    }
  };

  [[nodiscard]] Match match_prefix(const KvReserve& request) const;
  // The rest of a prefix whose `nodes` are known: a claimed block, or one that begins alike.
  void match_rest(const KvReserve& request, uint32_t limit, RadixNode* node, Match& match) const;
  void lock_match(const Match& match);
  void unlock_match(const Match& match);
  void drop_copy(Match& match);
  // Answers, or returns the node to wait for.
  RadixNode* try_reserve(const KvReserve& request, std::vector<KvReply>& out);
  void grant(const KvReserve& request, const Match& match, Sequence& sequence,
             std::vector<KvReply>& out);
  void claim_prompt_blocks(const KvReserve& request, size_t first, Sequence& sequence);
  [[nodiscard]] uint32_t returned_by_dropping(const Sequence& sequence) const;
  void commit_block(SequenceId id, Sequence& sequence, uint32_t index);
  void place_in_tree(Sequence& sequence, uint32_t index);
  void drop_tail(SequenceId id, Sequence& sequence, size_t keep);
  void drop_entry(SequenceId id, const Entry& entry);
  void unlock_copy_source(Sequence& sequence);
  void forget_deferred(SequenceId id);

  // kv_cache_manager_window.cc; with window_ only.
  void cut_to_window(Match& match) const;
  void grant_window(const KvReserve& request, const Match& match, Sequence& sequence,
                    KvReserved& reply);
  // Gives up what no row after `computed` sees, and hands out what that makes room for.
  void advance_window(SequenceId id, Sequence& sequence, uint32_t computed,
                      std::vector<KvReply>& out);
  void fill_window(SequenceId id, Sequence& sequence, std::vector<KvReply>& out);
  void take_window_blocks(SequenceId id, Sequence& sequence);
  void drop_window_block(Entry& entry, bool left_behind);
  void drop_window(Sequence& sequence);
  void lease_window(Sequence& sequence, bool begins);
  void check_window_sequence(SequenceId id, const Sequence& sequence,
                             std::vector<uint32_t>& users) const;
  void check_window() const;

  [[nodiscard]] uint32_t available() const;  // free or evictable
  BlockIndex allocate(SequenceId id);
  void lock(RadixNode* node);
  void unlock(RadixNode* node);
  void wake(RadixNode* node);
  void retry_woken(std::vector<KvReply>& out);

  void check_sequences(std::vector<uint32_t>& users) const;
  void check_tree() const;

  const KvCacheManagerOptions options_;
  BlockPool pool_;
  RadixTree tree_;
  LruEviction eviction_;
  std::optional<WindowBlocks> window_;
  std::vector<RadixNode*> cached_nodes_;  // by block; valid while the block is cached
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::vector<Deferred> deferred_;  // first come, first served
  bool any_woken_ = false;
  uint64_t prefix_query_tokens_ = 0;
  uint64_t prefix_hit_tokens_ = 0;
  uint64_t evictions_ = 0;
  uint64_t batches_since_check_ = 0;
};

}  // namespace troupe
