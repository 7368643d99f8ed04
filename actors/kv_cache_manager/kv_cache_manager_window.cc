// The part of the KV-cache manager that deals with windowed layers whose KV has blocks of its own.
// Of these a sequence holds those that some row to be computed still sees, and those that its next
// steps fill.

#include <algorithm>

#include "actors/kv_cache_manager/kv_cache_manager_core.h"
#include "base/assert.h"
#include "engine/kv/window.h"

namespace troupe {

// To the longest prefix behind which nothing of the window is missing.
void KvCacheManagerCore::cut_to_window(Match& match) const {
  const uint32_t window = window_->window();
  uint32_t whole = 0, whole_from = 0;
  uint32_t first = 0;  // nodes [first, i) have their windowed blocks
  for (uint32_t i = 0; i < match.nodes.size(); ++i) {
    if (match.nodes[i]->window == kNoBlock) first = i + 1;
    const uint32_t seen = first_seen_block((i + 1) * kBlockTokens, window);
    if (first > seen) continue;
    whole = i + 1;
    whole_from = seen;
  }
  match.nodes.resize(whole);
  match.window_first = whole_from;
}

// Precondition: what is matched is locked, and what the request wants can be promised.
void KvCacheManagerCore::grant_window(const KvReserve& request, const Match& match,
                                      Sequence& sequence, KvReserved& reply) {
  TROUPE_ASSERT(sequence.window_promised == 0, request.sequence, sequence.window_promised);
  window_->promise(request.window_blocks + (match.copy_source != nullptr ? 1 : 0));
  sequence.window_promised = request.window_blocks;
  sequence.window_later = request.window_blocks_later;
  sequence.covered = request.cover_tokens;
  const auto matched = static_cast<uint32_t>(match.nodes.size());
  sequence.window_first = match.window_first;
  sequence.window_end = std::max(matched, match.window_first);
  for (uint32_t i = match.window_first; i < matched; ++i)
    sequence.entries[i].window = match.nodes[i]->window;
  take_window_blocks(request.sequence, sequence);
  reply.window_first = sequence.window_first;
  reply.window_blocks.reserve(sequence.window_end - sequence.window_first);
  for (uint32_t i = sequence.window_first; i < sequence.window_end; ++i)
    reply.window_blocks.push_back(sequence.entries[i].window);
  if (!reply.copy) return;
  reply.copy->window_from = match.copy_source->window;
  reply.copy->window_to = sequence.entries[matched].window;
}

void KvCacheManagerCore::advance_window(SequenceId id, Sequence& sequence, uint32_t computed,
                                        std::vector<KvReply>& out) {
  const uint32_t first = first_kept_block(computed, window_->window());
  for (; sequence.window_first < first; ++sequence.window_first) {
    if (sequence.window_first < sequence.window_end)
      drop_window_block(sequence.entries[sequence.window_first], true);
  }
  sequence.window_end = std::max(sequence.window_end, sequence.window_first);
  if (computed >= sequence.covered) {
    const uint32_t held = sequence.window_end - sequence.window_first;
    const uint32_t later = std::max(sequence.window_later, held);
    if (later < sequence.window_promised) {
      window_->take_back(sequence.window_promised - later);
      sequence.window_promised = later;
    }
  }
  fill_window(id, sequence, out);
}

void KvCacheManagerCore::fill_window(SequenceId id, Sequence& sequence, std::vector<KvReply>& out) {
  const uint32_t end = sequence.window_end;
  take_window_blocks(id, sequence);
  if (sequence.window_end == end) return;
  KvWindow more{.sequence = id, .first_index = end, .blocks = {}};
  for (uint32_t i = end; i < sequence.window_end; ++i)
    more.blocks.push_back(sequence.entries[i].window);
  out.emplace_back(std::move(more));
}

void KvCacheManagerCore::take_window_blocks(SequenceId id, Sequence& sequence) {
  const auto most = std::min(static_cast<uint32_t>(sequence.entries.size()),
                             sequence.window_first + sequence.window_promised);
  for (; sequence.window_end < most; ++sequence.window_end)
    sequence.entries[sequence.window_end].window = window_->allocate(id);
}

void KvCacheManagerCore::drop_window_block(Entry& entry, bool left_behind) {
  const bool is_full = window_->pool().state(entry.window) == BlockState::kHeld;
  if (is_full && entry.node != nullptr)
    window_->unlock(entry.node, left_behind);
  else
    window_->give_back(entry.window);
  entry.window = kNoBlock;
}

// From the tail, as the other blocks.
void KvCacheManagerCore::drop_window(Sequence& sequence) {
  for (; sequence.window_end > sequence.window_first; --sequence.window_end)
    drop_window_block(sequence.entries[sequence.window_end - 1], false);
  window_->take_back(std::exchange(sequence.window_promised, 0));
}

// Of the sequence's blocks from leased_from on.
void KvCacheManagerCore::lease_window(Sequence& sequence, bool begins) {
  for (uint32_t i = std::max(*sequence.leased_from, sequence.window_first); i < sequence.window_end;
       ++i) {
    const BlockIndex block = sequence.entries[i].window;
    begins ? window_->pool().lease(block) : window_->pool().end_lease(block);
  }
}

void KvCacheManagerCore::check_window_sequence(SequenceId id, const Sequence& sequence,
                                               std::vector<uint32_t>& users) const {
  const BlockPool& pool = window_->pool();
  TROUPE_ASSERT(sequence.window_end - sequence.window_first <= sequence.window_promised ||
                    sequence.window_end == sequence.window_first,
                id, sequence.window_first, sequence.window_end, sequence.window_promised);
  for (uint32_t i = 0; i < sequence.entries.size(); ++i) {
    const Entry& entry = sequence.entries[i];
    const bool has_block = i >= sequence.window_first && i < sequence.window_end;
    TROUPE_ASSERT(has_block == (entry.window != kNoBlock), id, i, entry.window);
    if (!has_block) continue;
    if (i >= sequence.committed_blocks) {
      TROUPE_ASSERT(pool.owner(entry.window) == id, id, i, entry.window);
      const bool is_leased = sequence.leased_from && i >= *sequence.leased_from;
      TROUPE_ASSERT(is_leased == (pool.state(entry.window) == BlockState::kLeased), id, i);
      continue;
    }
    ++users[entry.window.value];
    if (entry.node != nullptr)
      TROUPE_ASSERT(entry.node->window == entry.window, id, i, entry.window);
  }
  if (sequence.copy_source != nullptr) ++users[sequence.copy_source->window.value];
}

void KvCacheManagerCore::check_window() const {
  window_->check_invariants();
  const BlockPool& pool = window_->pool();
  std::vector<uint32_t> users(pool.total());
  uint32_t promised = 0, computing = 0;
  for (const auto& [id, sequence] : sequences_) {
    check_window_sequence(id, sequence, users);
    promised += sequence.window_promised + (sequence.copy_source != nullptr ? 1 : 0);
    const uint32_t full = std::max(sequence.window_first, sequence.committed_blocks);
    computing += sequence.window_end > full ? sequence.window_end - full : 0;
  }
  TROUPE_ASSERT(promised == window_->promised(), promised, window_->promised());
  TROUPE_ASSERT(computing == pool.count(BlockState::kComputing) + pool.count(BlockState::kLeased),
                computing);
  for (uint32_t i = 0; i < pool.total(); ++i)
    TROUPE_ASSERT(users[i] == pool.users(BlockIndex{i}), i, users[i], pool.users(BlockIndex{i}));
  std::vector<bool> seen(pool.total());
  uint32_t cached = 0;
  tree_.for_each([&](const RadixNode& node) {
    if (node.window == kNoBlock) return;
    TROUPE_ASSERT(!node.claimant && !seen[node.window.value], node.block, node.window);
    seen[node.window.value] = true;
    const BlockState state = pool.state(node.window);
    if (state == BlockState::kCached) ++cached;
    TROUPE_ASSERT(state == BlockState::kHeld || state == BlockState::kCached, node.window,
                  to_string(state));
    // A windowed block that is used belongs to a node that is.
    if (state == BlockState::kHeld)
      TROUPE_ASSERT(pool_.state(node.block) == BlockState::kHeld, node.block, node.window);
  });
  TROUPE_ASSERT(cached == pool.count(BlockState::kCached), cached);
}

}  // namespace troupe
