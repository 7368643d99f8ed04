#include "actors/kv_cache_manager/kv_cache_manager_core.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "base/assert.h"
#include "engine/kv/window.h"

namespace troupe {
namespace {

uint32_t blocks_for(uint32_t tokens) {
  return tokens / kBlockTokens + (tokens % kBlockTokens != 0 ? 1 : 0);
}

std::span<const TokenId> block_tokens(const std::vector<TokenId>& tokens, size_t index) {
  return std::span(tokens).subspan(index * kBlockTokens, kBlockTokens);
}

}  // namespace

KvCacheManagerCore::KvCacheManagerCore(const KvCacheManagerOptions& options,
                                       const BlockHasher& hasher)
    : options_(options),
      pool_(options.blocks),
      tree_(options.blocks, hasher),
      eviction_(options.blocks),
      cached_nodes_(options.blocks) {
  TROUPE_ASSERT(options.copy_tokens_min >= 1, options.copy_tokens_min);
  if (options.window_blocks > 0) window_.emplace(options.window, options.window_blocks);
}

void KvCacheManagerCore::on_requests(std::span<const KvRequest> requests,
                                     std::vector<KvReply>& out) {
  ++batches_since_check_;
  for (const KvRequest& request : requests) {
    if (const auto* reserve = std::get_if<KvReserve>(&request)) on_reserve(*reserve, out);
    if (const auto* extend = std::get_if<KvExtend>(&request)) on_extend(*extend, out);
    if (const auto* commit = std::get_if<KvCommit>(&request)) on_commit(*commit, out);
    if (const auto* trim = std::get_if<KvTrim>(&request)) on_trim(*trim, out);
    if (const auto* release = std::get_if<KvRelease>(&request)) on_release(*release, out);
    if (const auto* lease = std::get_if<KvLease>(&request)) on_lease(*lease);
    if (const auto* end = std::get_if<KvEndLease>(&request)) on_end_lease(*end);
  }
}

void KvCacheManagerCore::on_reserve(const KvReserve& request, std::vector<KvReply>& out) {
  TROUPE_ASSERT(request.tokens != nullptr && !request.tokens->empty(), request.sequence);
  TROUPE_ASSERT(request.cover_tokens >= 1, request.sequence);
  Sequence& sequence = sequences_[request.sequence];
  if (request.attempt <= sequence.attempt) return;
  sequence.attempt = request.attempt;
  if (sequence.deferred) forget_deferred(request.sequence);
  // What is not full cannot be found again through the tree; and nobody waits for himself.
  unlock_copy_source(sequence);
  if (window_) drop_window(sequence);
  drop_tail(request.sequence, sequence, sequence.committed_blocks);
  if (RadixNode* node = try_reserve(request, out)) {
    sequence.deferred = true;
    ++node->waiters;
    deferred_.push_back({.request = request, .waits_for = node});
  }
  retry_woken(out);
}

KvCacheManagerCore::Match KvCacheManagerCore::match_prefix(const KvReserve& request) const {
  Match match;
  RadixNode* node = tree_.find_root(request.cache_salt);
  if (node == nullptr) return match;
  const std::vector<TokenId>& tokens = *request.tokens;
  // The last token is always computed, for its logits.
  const uint32_t last = std::min<uint32_t>(request.cover_tokens, tokens.size()) - 1;
  const uint32_t limit = std::min(request.reuse_tokens_max, last);
  for (size_t index = 0; (index + 1) * kBlockTokens <= limit; ++index) {
    RadixNode* child = tree_.find_child(node, block_tokens(tokens, index));
    if (child == nullptr) break;
    if (child->claimant) {
      match.claimed = child;
      break;
    }
    match.nodes.push_back(child);
    node = child;
  }
  if (window_) {
    cut_to_window(match);
    node = match.nodes.empty() ? tree_.find_root(request.cache_salt) : match.nodes.back();
  }
  if (match.claimed == nullptr) match_rest(request, limit, node, match);
  return match;
}

void KvCacheManagerCore::match_rest(const KvReserve& request, uint32_t limit, RadixNode* node,
                                    Match& match) const {
  const std::vector<TokenId>& tokens = *request.tokens;
  const size_t index = match.nodes.size();
  const size_t begin = index * kBlockTokens;
  const size_t wanted = std::min<size_t>(limit - begin, kBlockTokens);
  if (wanted < options_.copy_tokens_min) return;
  if (begin + kBlockTokens <= tokens.size()) {
    // The limit cuts this block, but all of it is known: whoever computes it saves us `wanted`
    // tokens.
    RadixNode* child = tree_.find_child(node, block_tokens(tokens, index));
    if (child != nullptr && child->claimant) {
      match.claimed = child;
      return;
    }
  }
  const auto partial =
      tree_.find_partial(node, std::span(tokens).subspan(begin, wanted), window_.has_value());
  if (partial.tokens >= options_.copy_tokens_min) {
    match.copy_source = partial.node;
    match.copy_tokens = partial.tokens;
  }
}

void KvCacheManagerCore::lock_match(const Match& match) {
  for (RadixNode* node : match.nodes) lock(node);
  if (match.copy_source != nullptr) lock(match.copy_source);
  if (!window_) return;
  for (size_t i = match.window_first; i < match.nodes.size(); ++i) window_->lock(match.nodes[i]);
  if (match.copy_source != nullptr) window_->lock(match.copy_source);
}

void KvCacheManagerCore::unlock_match(const Match& match) {
  TROUPE_ASSERT(match.copy_source == nullptr, match.copy_tokens);
  for (size_t i = match.nodes.size(); i > 0; --i) {
    if (window_ && i > match.window_first) window_->unlock(match.nodes[i - 1], false);
    unlock(match.nodes[i - 1]);
  }
}

void KvCacheManagerCore::drop_copy(Match& match) {
  if (window_) window_->unlock(match.copy_source, false);
  unlock(match.copy_source);
  match.copy_source = nullptr;
  match.copy_tokens = 0;
}

RadixNode* KvCacheManagerCore::try_reserve(const KvReserve& request, std::vector<KvReply>& out) {
  Sequence& sequence = sequences_.at(request.sequence);
  Match match = match_prefix(request);
  if (match.claimed != nullptr && deferred_.size() < kDeferredReservesMax) return match.claimed;

  // A block that is imported need not be filled by copy.
  const bool imports = match.cached_tokens() < request.import_below;
  if (window_ && imports) {
    match.copy_source = nullptr;
    match.copy_tokens = 0;
    match.window_first = first_kept_block(request.import_tokens, window_->window());
  }
  lock_match(match);
  const auto matched = static_cast<uint32_t>(match.nodes.size());
  const uint32_t blocks = blocks_for(request.cover_tokens);
  TROUPE_ASSERT(matched <= blocks, matched, blocks);
  const uint64_t needed = uint64_t{blocks - matched} + request.spare_blocks;
  const uint32_t returned = returned_by_dropping(sequence);
  const uint32_t promisable = window_ ? window_->promisable() : 0;
  const auto is_short = [&] {
    const uint32_t copies = match.copy_source != nullptr ? 1 : 0;
    return needed > available() + returned ||
           (window_ && request.window_blocks + copies > promisable);
  };
  // The block to copy from may be the very one that is needed.
  if (is_short() && match.copy_source != nullptr) drop_copy(match);
  if (is_short()) {
    const uint32_t found = available() + returned;
    unlock_match(match);
    out.emplace_back(KvRefused{.sequence = request.sequence,
                               .attempt = request.attempt,
                               .blocks_needed = static_cast<uint32_t>(needed),
                               .blocks_available = found,
                               .window_needed = request.window_blocks,
                               .window_available = promisable});
    return nullptr;
  }
  grant(request, match, sequence, out);
  return nullptr;
}

// Precondition: the matched nodes and the copy source are locked, and there are enough blocks.
void KvCacheManagerCore::grant(const KvReserve& request, const Match& match, Sequence& sequence,
                               std::vector<KvReply>& out) {
  drop_tail(request.sequence, sequence, 0);
  sequence.known = request.tokens;
  sequence.appended.clear();
  sequence.outside_tree = false;
  if (sequence.root == nullptr) sequence.root = tree_.acquire_root(request.cache_salt);
  TROUPE_ASSERT(*sequence.root->salt == request.cache_salt, request.sequence);
  sequence.copy_source = match.copy_source;
  const uint32_t blocks = blocks_for(request.cover_tokens);
  sequence.entries.reserve(blocks);
  for (RadixNode* node : match.nodes) sequence.entries.push_back({node->block, node});
  sequence.committed_blocks = static_cast<uint32_t>(match.nodes.size());
  while (sequence.entries.size() < blocks)
    sequence.entries.push_back({allocate(request.sequence), nullptr});
  claim_prompt_blocks(request, match.nodes.size(), sequence);

  KvReserved reply;
  reply.sequence = request.sequence;
  reply.attempt = request.attempt;
  reply.cached_tokens = match.cached_tokens();
  reply.blocks.reserve(blocks);
  for (const Entry& entry : sequence.entries) reply.blocks.push_back(entry.block);
  if (match.copy_source != nullptr)
    reply.copy = StepPlan::BlockCopy{.from = match.copy_source->block,
                                     .to = reply.blocks[sequence.committed_blocks]};
  if (window_) grant_window(request, match, sequence, reply);
  TROUPE_ASSERT(reply.cached_tokens < request.cover_tokens, reply.cached_tokens,
                request.cover_tokens);
  if (!std::exchange(sequence.granted, true) && request.reuse_tokens_max > 0) {
    prefix_query_tokens_ += request.cover_tokens;
    prefix_hit_tokens_ += reply.cached_tokens;
  }
  out.emplace_back(std::move(reply));
}

// Tells others that these blocks will be computed, as far as the tree has nothing there yet.
void KvCacheManagerCore::claim_prompt_blocks(const KvReserve& request, size_t first,
                                             Sequence& sequence) {
  RadixNode* parent = first == 0 ? sequence.root : sequence.entries[first - 1].node;
  const size_t full = std::min<size_t>(request.cover_tokens, request.tokens->size()) / kBlockTokens;
  for (size_t i = first; i < full; ++i) {
    Entry& entry = sequence.entries[i];
    entry.node = tree_.insert(parent, block_tokens(*request.tokens, i), entry.block);
    if (entry.node == nullptr) return;
    entry.node->claimant = request.sequence;
    parent = entry.node;
  }
}

// How many blocks would become free or evictable if the sequence let go of all (committed) ones.
uint32_t KvCacheManagerCore::returned_by_dropping(const Sequence& sequence) const {
  uint32_t returned = 0;
  for (const Entry& entry : sequence.entries)
    if (pool_.users(entry.block) == 1) ++returned;
  return returned;
}

void KvCacheManagerCore::on_extend(const KvExtend& request, std::vector<KvReply>& out) {
  KvExtended answer;
  answer.number = request.number;
  std::vector<KvReply> more;
  for (const KvExtend::Item& item : request.items) {
    const auto found = sequences_.find(item.sequence);
    if (found == sequences_.end()) continue;
    Sequence& sequence = found->second;
    if (sequence.deferred || !sequence.granted) continue;
    const auto have = static_cast<uint32_t>(sequence.entries.size());
    const uint32_t missing = item.blocks > have ? item.blocks - have : 0;
    if (missing > available()) {
      answer.refusals.push_back(
          {.sequence = item.sequence, .blocks_missing = missing - available()});
      continue;
    }
    KvExtended::Grant grant{.sequence = item.sequence, .first_index = have, .blocks = {}};
    for (uint32_t i = 0; i < missing; ++i) {
      grant.blocks.push_back(allocate(item.sequence));
      sequence.entries.push_back({grant.blocks.back(), nullptr});
    }
    answer.grants.push_back(std::move(grant));
    if (window_) fill_window(item.sequence, sequence, more);
  }
  out.emplace_back(std::move(answer));
  std::move(more.begin(), more.end(), std::back_inserter(out));
}

void KvCacheManagerCore::on_commit(const KvCommit& request, std::vector<KvReply>& out) {
  for (const KvCommit::Item& item : request.items) {
    const auto found = sequences_.find(item.sequence);
    if (found == sequences_.end() || found->second.known == nullptr) continue;
    Sequence& sequence = found->second;
    const size_t known_end = sequence.known->size() + sequence.appended.size();
    TROUPE_ASSERT(item.first_position <= known_end, item.sequence, item.first_position, known_end);
    const size_t repeated = known_end - item.first_position;
    if (repeated < item.tokens.size())
      sequence.appended.insert(sequence.appended.end(),
                               item.tokens.begin() + static_cast<ptrdiff_t>(repeated),
                               item.tokens.end());
    TROUPE_ASSERT(item.computed <= sequence.known->size() + sequence.appended.size(), item.sequence,
                  item.computed, known_end);
    unlock_copy_source(sequence);
    const auto full = static_cast<uint32_t>(
        std::min<size_t>(item.computed / kBlockTokens, sequence.entries.size()));
    for (; sequence.committed_blocks < full; ++sequence.committed_blocks)
      commit_block(item.sequence, sequence, sequence.committed_blocks);
    if (window_) advance_window(item.sequence, sequence, item.computed, out);
  }
  retry_woken(out);
}

void KvCacheManagerCore::commit_block(SequenceId id, Sequence& sequence, uint32_t index) {
  const Entry& entry = sequence.entries[index];
  TROUPE_ASSERT(pool_.owner(entry.block) == id, entry.block, pool_.owner(entry.block), id);
  pool_.complete(entry.block);
  if (entry.node != nullptr) {
    TROUPE_ASSERT(entry.node->claimant == id, entry.block, id);
    entry.node->claimant.reset();
    wake(entry.node);
  } else if (!sequence.outside_tree) {
    place_in_tree(sequence, index);
  }
  if (entry.window != kNoBlock) window_->complete(entry.window, entry.node);
}

// The block at `index` just became full and is not in the tree by a claim of its own.
void KvCacheManagerCore::place_in_tree(Sequence& sequence, uint32_t index) {
  Entry& entry = sequence.entries[index];
  RadixNode* parent = index == 0 ? sequence.root : sequence.entries[index - 1].node;
  TROUPE_ASSERT(parent != nullptr, index, entry.block);
  std::array<TokenId, kBlockTokens> tokens;
  const size_t begin = size_t{index} * kBlockTokens;
  for (size_t i = 0; i < kBlockTokens; ++i) {
    const size_t position = begin + i;
    tokens[i] = position < sequence.known->size()
                    ? (*sequence.known)[position]
                    : sequence.appended[position - sequence.known->size()];
  }
  RadixNode* node = tree_.find_child(parent, tokens);
  if (node == nullptr) {
    entry.node = tree_.insert(parent, tokens, entry.block);
  } else if (pool_.state(node->block) == BlockState::kCached) {
    // Nobody uses the old copy: ours takes its place.
    eviction_.remove(node->block);
    pool_.evict(node->block);
    node->block = entry.block;
    node->window_shared = true;  // somebody asked for it again
    entry.node = node;
  }
  sequence.outside_tree = entry.node == nullptr;
}

void KvCacheManagerCore::on_trim(const KvTrim& request, std::vector<KvReply>& out) {
  const auto found = sequences_.find(request.sequence);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  unlock_copy_source(sequence);
  if (window_) drop_window(sequence);
  drop_tail(request.sequence, sequence, request.keep_blocks);
  retry_woken(out);
}

void KvCacheManagerCore::on_release(const KvRelease& request, std::vector<KvReply>& out) {
  const auto found = sequences_.find(request.sequence);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  if (sequence.deferred) forget_deferred(request.sequence);
  unlock_copy_source(sequence);
  if (window_) drop_window(sequence);
  drop_tail(request.sequence, sequence, 0);
  if (sequence.root != nullptr) tree_.release_root(sequence.root);
  sequences_.erase(found);
  retry_woken(out);
}

void KvCacheManagerCore::on_lease(const KvLease& request) {
  const auto found = sequences_.find(request.sequence);
  if (found == sequences_.end()) return;
  Sequence& sequence = found->second;
  if (sequence.leased_from) return;  // a repeated message
  TROUPE_ASSERT(request.first_block >= sequence.committed_blocks, request.sequence,
                request.first_block, sequence.committed_blocks);
  TROUPE_ASSERT(request.first_block < sequence.entries.size(), request.sequence,
                request.first_block, sequence.entries.size());
  sequence.leased_from = request.first_block;
  for (size_t i = request.first_block; i < sequence.entries.size(); ++i)
    pool_.lease(sequence.entries[i].block);
  if (window_) lease_window(sequence, true);
}

void KvCacheManagerCore::on_end_lease(const KvEndLease& request) {
  const auto found = sequences_.find(request.sequence);
  if (found == sequences_.end() || !found->second.leased_from) return;
  Sequence& sequence = found->second;
  for (size_t i = *sequence.leased_from; i < sequence.entries.size(); ++i)
    pool_.end_lease(sequence.entries[i].block);
  if (window_) lease_window(sequence, false);
  sequence.leased_from.reset();
}

// From the tail, so that no block becomes evictable before its descendants.
void KvCacheManagerCore::drop_tail(SequenceId id, Sequence& sequence, size_t keep) {
  while (sequence.entries.size() > keep) {
    drop_entry(id, sequence.entries.back());
    sequence.entries.pop_back();
  }
  sequence.committed_blocks =
      std::min(sequence.committed_blocks, static_cast<uint32_t>(sequence.entries.size()));
}

void KvCacheManagerCore::drop_entry(SequenceId id, const Entry& entry) {
  if (entry.node == nullptr) {
    if (pool_.state(entry.block) == BlockState::kComputing)
      pool_.abandon(entry.block);
    else
      pool_.discard(entry.block);
  } else if (entry.node->claimant) {
    TROUPE_ASSERT(entry.node->claimant == id, entry.block, id);
    wake(entry.node);
    tree_.erase(entry.node);
    pool_.abandon(entry.block);
  } else {
    unlock(entry.node);
  }
}

void KvCacheManagerCore::unlock_copy_source(Sequence& sequence) {
  RadixNode* source = std::exchange(sequence.copy_source, nullptr);
  if (source == nullptr) return;
  if (window_) {
    window_->unlock(source, false);
    window_->take_back(1);
  }
  unlock(source);
}

void KvCacheManagerCore::forget_deferred(SequenceId id) {
  const auto place =
      std::find_if(deferred_.begin(), deferred_.end(),
                   [id](const Deferred& waiting) { return waiting.request.sequence == id; });
  TROUPE_ASSERT(place != deferred_.end(), id);
  if (place->waits_for != nullptr) --place->waits_for->waiters;
  deferred_.erase(place);
  sequences_.at(id).deferred = false;
}

uint32_t KvCacheManagerCore::available() const {
  return pool_.free_count() + eviction_.size();
}

BlockIndex KvCacheManagerCore::allocate(SequenceId id) {
  if (pool_.free_count() == 0) {
    const BlockIndex victim = eviction_.front();
    eviction_.remove(victim);
    if (window_) window_->forget(cached_nodes_[victim.value]);
    tree_.erase(cached_nodes_[victim.value]);  // asserts that it is a leaf
    pool_.evict(victim);
    ++evictions_;
  }
  return pool_.allocate(id);
}

void KvCacheManagerCore::lock(RadixNode* node) {
  TROUPE_ASSERT(!node->claimant, node->block);
  if (pool_.state(node->block) == BlockState::kCached) eviction_.remove(node->block);
  pool_.lock(node->block);
}

void KvCacheManagerCore::unlock(RadixNode* node) {
  if (!pool_.unlock(node->block)) return;
  eviction_.insert(node->block);
  cached_nodes_[node->block.value] = node;
}

void KvCacheManagerCore::wake(RadixNode* node) {
  if (node->waiters == 0) return;
  for (Deferred& waiting : deferred_) {
    if (waiting.waits_for != node) continue;
    waiting.waits_for = nullptr;
    --node->waiters;
  }
  TROUPE_ASSERT(node->waiters == 0, node->block, node->waiters);
  any_woken_ = true;
}

// Once per request: several blocks of one commit wake a waiter once. The first one woken may claim
// what follows, and the next ones then wait for that.
void KvCacheManagerCore::retry_woken(std::vector<KvReply>& out) {
  if (!std::exchange(any_woken_, false)) return;
  for (Deferred& waiting : deferred_) {
    if (waiting.waits_for != nullptr) continue;
    waiting.waits_for = try_reserve(waiting.request, out);
    if (waiting.waits_for != nullptr)
      ++waiting.waits_for->waiters;
    else
      sequences_.at(waiting.request.sequence).deferred = false;
  }
  TROUPE_ASSERT(!any_woken_, deferred_.size());  // answering a reserve gives up no claim
  std::erase_if(deferred_, [](const Deferred& waiting) { return waiting.waits_for == nullptr; });
}

KvStats KvCacheManagerCore::stats() const {
  KvStats stats{.blocks_total = pool_.total(),
                .blocks_free = pool_.free_count(),
                .blocks_computing = pool_.count(BlockState::kComputing),
                .blocks_leased = pool_.count(BlockState::kLeased),
                .blocks_held = pool_.count(BlockState::kHeld),
                .blocks_cached = pool_.count(BlockState::kCached),
                .sequences = static_cast<uint32_t>(sequences_.size()),
                .reserves_deferred = static_cast<uint32_t>(deferred_.size()),
                .prefix_query_tokens = prefix_query_tokens_,
                .prefix_hit_tokens = prefix_hit_tokens_,
                .evictions = evictions_,
                .window = {}};
  if (!window_) return stats;
  const BlockPool& pool = window_->pool();
  stats.window = {.total = pool.total(),
                  .free = pool.free_count(),
                  .computing = pool.count(BlockState::kComputing),
                  .leased = pool.count(BlockState::kLeased),
                  .held = pool.count(BlockState::kHeld),
                  .cached = pool.count(BlockState::kCached)};
  stats.window_promised = window_->promised();
  stats.window_evictions = window_->evictions();
  return stats;
}

void KvCacheManagerCore::check_sequences(std::vector<uint32_t>& users) const {
  uint32_t computing = 0, leased = 0;
  for (const auto& [id, sequence] : sequences_) {
    TROUPE_ASSERT(sequence.committed_blocks <= sequence.entries.size(), id);
    if (sequence.leased_from)
      TROUPE_ASSERT(*sequence.leased_from >= sequence.committed_blocks, id, *sequence.leased_from);
    for (size_t i = 0; i < sequence.entries.size(); ++i) {
      const Entry& entry = sequence.entries[i];
      const bool full = i < sequence.committed_blocks;
      if (entry.node != nullptr) {
        TROUPE_ASSERT(entry.node->block == entry.block, id, i, entry.block);
        TROUPE_ASSERT(full == !entry.node->claimant, id, i, entry.block);
      }
      if (full) {
        ++users[entry.block.value];
      } else {
        TROUPE_ASSERT(pool_.owner(entry.block) == id, id, i, entry.block);
        const bool is_leased = sequence.leased_from && i >= *sequence.leased_from;
        TROUPE_ASSERT(is_leased == (pool_.state(entry.block) == BlockState::kLeased), id, i);
        ++(is_leased ? leased : computing);
      }
    }
    if (sequence.copy_source != nullptr) ++users[sequence.copy_source->block.value];
  }
  TROUPE_ASSERT(computing == pool_.count(BlockState::kComputing), computing);
  TROUPE_ASSERT(leased == pool_.count(BlockState::kLeased), leased);
}

void KvCacheManagerCore::check_tree() const {
  std::vector<bool> seen(pool_.total());
  uint32_t cached = 0, waiters = 0;
  tree_.for_each([this, &seen, &cached, &waiters](const RadixNode& node) {
    TROUPE_ASSERT(!seen[node.block.value], node.block);
    seen[node.block.value] = true;
    waiters += node.waiters;
    const BlockState state = pool_.state(node.block);
    if (node.claimant)
      TROUPE_ASSERT(pool_.owner(node.block) == *node.claimant, node.block, *node.claimant);
    else
      TROUPE_ASSERT(state == BlockState::kHeld || state == BlockState::kCached, node.block,
                    to_string(state));
    if (state == BlockState::kCached) {
      ++cached;
      TROUPE_ASSERT(cached_nodes_[node.block.value] == &node, node.block);
    } else if (node.parent->parent != nullptr) {
      // In use means that everything before it is in use: what is evictable hangs below.
      const BlockState above = pool_.state(node.parent->block);
      const bool both_claimed = node.claimant && node.claimant == node.parent->claimant;
      TROUPE_ASSERT(above == BlockState::kHeld || both_claimed, node.block, to_string(above));
    }
  });
  TROUPE_ASSERT(cached == pool_.count(BlockState::kCached), cached);
  TROUPE_ASSERT(cached == eviction_.size(), cached, eviction_.size());
  TROUPE_ASSERT(waiters == deferred_.size(), waiters, deferred_.size());
  if (cached > 0) {
    const BlockIndex next = eviction_.front();
    TROUPE_ASSERT(cached_nodes_[next.value]->children == 0, next);
  }
}

void KvCacheManagerCore::check_invariants() const {
  pool_.check_invariants();
  tree_.check_invariants();
  std::vector<uint32_t> users(pool_.total());
  check_sequences(users);
  for (uint32_t i = 0; i < pool_.total(); ++i)
    TROUPE_ASSERT(users[i] == pool_.users(BlockIndex{i}), i, users[i], pool_.users(BlockIndex{i}));
  check_tree();
  TROUPE_ASSERT(!any_woken_, deferred_.size());
  if (window_) check_window();
}

bool KvCacheManagerCore::check_when_idle() {
  if (!sequences_.empty() || batches_since_check_ < pool_.total()) return false;
  batches_since_check_ = 0;
  check_invariants();
  return true;
}

}  // namespace troupe
