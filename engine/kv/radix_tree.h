#pragma once
// The prefix cache's index: a radix tree whose edges are blocks of 16 tokens. It knows which block
// holds which content after which prefix; who uses blocks is the pool's business.
//
// A node is found by its chained identity in one hash table, not by descending; tokens and parent
// are compared on every hit, so a hash collision is a miss, never a wrong block.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ids.h"
#include "engine/kv/block_hash.h"

namespace troupe {

// Owned by the tree; its address stays until erase().
struct RadixNode {
  BlockIdentity identity;
  RadixNode* parent = nullptr;  // null: a root, the empty prefix of one salt
  std::array<TokenId, kBlockTokens> tokens{};
  BlockIndex block;
  // KV of the windowed layers, where these have blocks of their own; kNoBlock when it is not there.
  // Kept by WindowBlocks.
  BlockIndex window = kNoBlock;
  bool window_shared = false;       // a second sequence has used it
  bool window_left_behind = false;  // while unused: which list it is in
  // Set while the content is being computed by this sequence: a promise, not yet a hit.
  std::optional<SequenceId> claimant;
  uint32_t waiters = 0;  // reserves that wait for the claim; kept by the KV-cache manager
  uint32_t children = 0;
  uint32_t sequences = 0;  // of a root: sequences that started there; it stays as long as any

  // Intrusive links, for the tree only: children as a list (latest first), hash chain.
  RadixNode* first_child = nullptr;
  RadixNode* previous_sibling = nullptr;
  RadixNode* next_sibling = nullptr;
  RadixNode* next_in_bucket = nullptr;
  const std::string* salt = nullptr;  // of a root
};

class RadixTree {
 public:
  // At most `nodes_max` nodes besides roots; `hasher` outlives the tree.
  RadixTree(uint32_t nodes_max, const BlockHasher& hasher);
  RadixTree(const RadixTree&) = delete;
  RadixTree& operator=(const RadixTree&) = delete;

  // Null when nothing is stored for the salt.
  [[nodiscard]] RadixNode* find_root(std::string_view salt) const;
  // Makes the root where needed and counts one sequence on it.
  RadixNode* acquire_root(const std::string& salt);
  // The root goes when the last sequence and the last child are gone.
  void release_root(RadixNode* root);

  // The child of `parent` with exactly these kBlockTokens tokens, claimed or not; or null.
  [[nodiscard]] RadixNode* find_child(RadixNode* parent, std::span<const TokenId> tokens) const;
  // Of the computed children: one that shares the longest beginning with `tokens` (fewer than 16
  // may be given), and how long that is. Looks at the kPartialScanMax latest children only, and
  // only at those with a window block where `needs_window`.
  struct PartialMatch {
    RadixNode* node = nullptr;
    uint32_t tokens = 0;
  };
  [[nodiscard]] PartialMatch find_partial(RadixNode* parent, std::span<const TokenId> tokens,
                                          bool needs_window = false) const;

  // Null when there is such a child already, or when another content has the same identity (then
  // this content is simply not cached).
  RadixNode* insert(RadixNode* parent, std::span<const TokenId> tokens, BlockIndex block);
  // Precondition: no children, no waiters.
  void erase(RadixNode* node);

  [[nodiscard]] uint32_t size() const { return size_; }  // without roots
  [[nodiscard]] size_t roots() const { return roots_.size(); }

  // Visits every node in no particular order, roots left out. For checks.
  template <class Visitor>
  void for_each(Visitor&& visit) const {
    for (const RadixNode* bucket : buckets_)
      for (const RadixNode* node = bucket; node != nullptr; node = node->next_in_bucket)
        visit(*node);
  }
  void check_invariants() const;

  static constexpr uint32_t kPartialScanMax = 64;

 private:
  [[nodiscard]] size_t bucket_of(const BlockIdentity& identity) const {
    return identity.low & (buckets_.size() - 1);
  }
  [[nodiscard]] RadixNode* find_identity(const BlockIdentity& identity) const;
  void forget_root_if_unused(RadixNode* root);

  const uint32_t nodes_max_;
  const BlockHasher& hasher_;
  std::vector<RadixNode*> buckets_;
  std::deque<RadixNode> nodes_;     // grows to the most nodes ever used
  std::vector<RadixNode*> unused_;  // of nodes_
  std::unordered_map<std::string, std::unique_ptr<RadixNode>> roots_;
  uint32_t size_ = 0;
};

}  // namespace troupe
