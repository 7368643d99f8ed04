#pragma once
// The KV-cache manager of one worker without its actor shell: owns the block pool and the radix
// tree, answers KvRequests. Single-threaded; no handler blocks; replies are appended to `out` in
// the order in which they are to be sent, and may concern other sequences than the request's.

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/kv/block_hash.h"
#include "engine/kv/block_pool.h"
#include "engine/kv/kv_messages.h"
#include "engine/kv/radix_tree.h"

namespace troupe {

struct KvCacheManagerOptions {
  uint32_t blocks = 0;  // of the pool; ≥ 1
  // A cached block whose first j < 16 tokens match is reused by copy when j ≥ this. One token saved
  // is a pass through all weights, a copy moves one block: 1 pays on every device we know.
  uint32_t copy_tokens_min = 1;
};

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

  [[nodiscard]] KvStats stats() const;  // O(1)
  // Aborts on the first broken invariant: every block has exactly one owner situation, every
  // reference is accounted for. O(blocks + held blocks); for tests and idle moments.
  void check_invariants() const;

  [[nodiscard]] const BlockPool& pool() const { return pool_; }

 private:
  // One place of a sequence's block table.
  struct Entry {
    BlockIndex block;
    // The tree's node of this place, locked by this sequence; null where the tree has none. When
    // node->block is another block, `block` is a private copy of the same content.
    RadixNode* node = nullptr;
  };
  struct Sequence {
    std::vector<Entry> entries;
    uint32_t committed_blocks = 0;  // entries [0, committed_blocks) are full
    // Tokens of the places that are not committed yet, from position tokens_first on.
    std::shared_ptr<const std::vector<TokenId>> known;  // of the last reserve: positions [0, size)
    std::vector<TokenId> appended;                      // positions from known->size() on
    RadixNode* root = nullptr;                          // of its salt; locked by this sequence
    RadixNode* copy_source = nullptr;                   // locked until the first commit
    bool outside_tree = false;  // an identity collided: later blocks stay private
    bool granted_before = false;
  };
  struct Deferred {
    KvReserve request;
    RadixNode* waits_for;  // null once that node is computed or given up
  };
  enum class Outcome { kAnswered, kDeferred };
  struct Match;

  Match match_prefix(const KvReserve& request) const;
  Outcome try_reserve(const KvReserve& request, std::vector<KvReply>& out);
  bool take_blocks(const KvReserve& request, const Match& match, Sequence& sequence,
                   std::vector<KvReply>& out);
  void claim_prompt_blocks(const KvReserve& request, uint32_t matched, Sequence& sequence);
  void commit_block(SequenceId id, Sequence& sequence, uint32_t index);
  void drop_tail(SequenceId id, Sequence& sequence, uint32_t keep);
  void drop_entry(SequenceId id, Entry entry);
  void unlock_copy_source(Sequence& sequence);
  [[nodiscard]] uint32_t available() const;
  BlockIndex allocate(SequenceId id);
  void lock(RadixNode* node);
  void unlock(RadixNode* node);
  void wake(RadixNode* node);
  void retry_woken(std::vector<KvReply>& out);

  KvCacheManagerOptions options_;
  BlockPool pool_;
  RadixTree tree_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  std::vector<Deferred> deferred_;  // first come, first served
  bool any_woken_ = false;
  uint64_t prefix_query_tokens_ = 0;
  uint64_t prefix_hit_tokens_ = 0;
  uint64_t evictions_ = 0;
};

}  // namespace troupe
