#include "engine/kv/radix_tree.h"

#include <algorithm>
#include <bit>

#include "base/assert.h"

namespace troupe {

RadixTree::RadixTree(uint32_t nodes_max, const BlockHasher& hasher)
    : nodes_max_(nodes_max), hasher_(hasher), buckets_(std::bit_ceil(size_t{nodes_max} * 2)) {
  TROUPE_ASSERT(nodes_max > 0, nodes_max);
}

RadixNode* RadixTree::find_root(std::string_view salt) const {
  const auto found = roots_.find(std::string(salt));
  return found == roots_.end() ? nullptr : found->second.get();
}

RadixNode* RadixTree::acquire_root(const std::string& salt) {
  auto [place, is_new] = roots_.try_emplace(salt);
  if (is_new) {
    place->second = std::make_unique<RadixNode>();
    place->second->identity = hasher_.root(salt);
    place->second->salt = &place->first;
  }
  ++place->second->sequences;
  return place->second.get();
}

void RadixTree::release_root(RadixNode* root) {
  TROUPE_ASSERT(root->parent == nullptr && root->sequences > 0, root->sequences);
  --root->sequences;
  forget_root_if_unused(root);
}

void RadixTree::forget_root_if_unused(RadixNode* root) {
  if (root->sequences > 0 || root->children > 0) return;
  roots_.erase(roots_.find(*root->salt));
}

RadixNode* RadixTree::find_identity(const BlockIdentity& identity) const {
  RadixNode* node = buckets_[bucket_of(identity)];
  while (node != nullptr && node->identity != identity) node = node->next_in_bucket;
  return node;
}

RadixNode* RadixTree::find_child(RadixNode* parent, std::span<const TokenId> tokens) const {
  TROUPE_ASSERT(tokens.size() == kBlockTokens, tokens.size());
  RadixNode* node = find_identity(hasher_.next(parent->identity, tokens));
  if (node == nullptr || node->parent != parent) return nullptr;
  return std::equal(tokens.begin(), tokens.end(), node->tokens.begin()) ? node : nullptr;
}

RadixTree::PartialMatch RadixTree::find_partial(RadixNode* parent, std::span<const TokenId> tokens,
                                                bool needs_window) const {
  const size_t most = std::min<size_t>(tokens.size(), kBlockTokens);
  PartialMatch best;
  uint32_t scanned = 0;
  for (RadixNode* child = parent->first_child; child != nullptr && scanned < kPartialScanMax;
       child = child->next_sibling, ++scanned) {
    if (child->claimant || (needs_window && child->window == kNoBlock)) continue;
    uint32_t same = 0;
    while (same < most && child->tokens[same] == tokens[same]) ++same;
    if (same > best.tokens) best = {.node = child, .tokens = same};
  }
  return best;
}

RadixNode* RadixTree::insert(RadixNode* parent, std::span<const TokenId> tokens, BlockIndex block) {
  TROUPE_ASSERT(tokens.size() == kBlockTokens, tokens.size());
  const BlockIdentity identity = hasher_.next(parent->identity, tokens);
  if (find_identity(identity) != nullptr) return nullptr;
  TROUPE_ASSERT(size_ < nodes_max_, size_, nodes_max_);
  if (unused_.empty()) unused_.push_back(&nodes_.emplace_back());
  RadixNode* node = unused_.back();
  unused_.pop_back();
  *node = {};
  node->identity = identity;
  node->parent = parent;
  node->block = block;
  std::copy(tokens.begin(), tokens.end(), node->tokens.begin());
  node->next_sibling = parent->first_child;
  if (parent->first_child != nullptr) parent->first_child->previous_sibling = node;
  parent->first_child = node;
  ++parent->children;
  node->next_in_bucket = buckets_[bucket_of(identity)];
  buckets_[bucket_of(identity)] = node;
  ++size_;
  return node;
}

void RadixTree::erase(RadixNode* node) {
  RadixNode* parent = node->parent;
  TROUPE_ASSERT(parent != nullptr, node->block);
  TROUPE_ASSERT(node->children == 0 && node->waiters == 0, node->block, node->children,
                node->waiters);
  TROUPE_ASSERT(parent->children > 0, node->block);
  RadixNode** link = &buckets_[bucket_of(node->identity)];
  while (*link != node) {
    TROUPE_ASSERT(*link != nullptr, node->block);
    link = &(*link)->next_in_bucket;
  }
  *link = node->next_in_bucket;
  if (node->previous_sibling != nullptr)
    node->previous_sibling->next_sibling = node->next_sibling;
  else
    parent->first_child = node->next_sibling;
  if (node->next_sibling != nullptr) node->next_sibling->previous_sibling = node->previous_sibling;
  --parent->children;
  --size_;
  unused_.push_back(node);
  if (parent->parent == nullptr) forget_root_if_unused(parent);
}

void RadixTree::check_invariants() const {
  uint32_t nodes = 0;
  uint64_t children = 0;
  for_each([this, &nodes, &children](const RadixNode& node) {
    ++nodes;
    children += node.children;
    TROUPE_ASSERT(node.parent != nullptr, node.block);
    TROUPE_ASSERT(node.identity == hasher_.next(node.parent->identity, node.tokens), node.block);
    TROUPE_ASSERT(find_identity(node.identity) == &node, node.block);
    uint32_t listed = 0;
    for (const RadixNode* child = node.first_child; child != nullptr; child = child->next_sibling) {
      TROUPE_ASSERT(child->parent == &node, node.block, child->block);
      ++listed;
    }
    TROUPE_ASSERT(listed == node.children, node.block, listed, node.children);
  });
  for (const auto& [salt, root] : roots_) {
    children += root->children;
    TROUPE_ASSERT(root->children > 0 || root->sequences > 0, salt);
  }
  TROUPE_ASSERT(nodes == size_, nodes, size_);
  TROUPE_ASSERT(children == nodes, children, nodes);
  TROUPE_ASSERT(nodes_.size() == size_ + unused_.size(), nodes_.size(), size_, unused_.size());
}

}  // namespace troupe
