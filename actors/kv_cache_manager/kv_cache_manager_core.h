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

namespace troupe {

struct KvCacheManagerOptions {
  uint32_t blocks = 0;  // of the pool; ≥ 1
  // A cached block whose first j < 16 tokens match is reused by copy when j ≥ this. One token saved
  // is a pass through all weights, a copy moves one block: 1 pays on every device we know.
  uint32_t copy_tokens_min = 1;
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

 private:
  // One place of a sequence's block table.
  struct Entry {
    BlockIndex block;
    // The tree's node of `block`, or null where the block is private. Claimed by this sequence
    // while the block is being computed, locked by it from then on.
    RadixNode* node = nullptr;
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
  };

  [[nodiscard]] Match match_prefix(const KvReserve& request) const;
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
