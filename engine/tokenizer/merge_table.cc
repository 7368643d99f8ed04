#include "engine/tokenizer/merge_table.h"

#include <algorithm>
#include <limits>

#include "base/assert.h"

namespace troupe {
namespace {

// std::push_heap keeps the greatest on top, so "less" means "to be merged later".
bool merges_later(const MergeTable::Scratch::Candidate& a,
                  const MergeTable::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
}

}  // namespace

MergeTable::MergeTable(size_t count) {
  size_t slots = 16;
  while (slots < 2 * count) slots *= 2;
  entries_.resize(slots);
}

size_t MergeTable::position_of(uint64_t pair) const {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const size_t mask = entries_.size() - 1;
  size_t at = (pair * kGoldenRatio >> 32) & mask;
  // Ends because at most half of the entries are in use.
  while (entries_[at].pair != kFree && entries_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

void MergeTable::add(TokenId left, TokenId right, uint32_t rank, TokenId merged) {
  TROUPE_ASSERT(left >= 0 && right >= 0 && merged >= 0, left, right, merged);
  TROUPE_ASSERT(used_ < entries_.size() / 2 + 1, used_);
  const uint64_t pair = pair_of(left, right);
  Entry& entry = entries_[position_of(pair)];
  if (entry.pair == pair) return;
  entry = {pair, rank, merged};
  ++used_;
}

void MergeTable::push_candidate(int32_t left_position, Scratch& scratch) const {
  if (left_position < 0) return;
  const Scratch::Symbol& left = scratch.symbols[static_cast<size_t>(left_position)];
  if (left.next < 0) return;
  const TokenId right = scratch.symbols[static_cast<size_t>(left.next)].id;
  const uint64_t pair = pair_of(left.id, right);
  const Entry& entry = entries_[position_of(pair)];
  if (entry.pair != pair) return;
  scratch.heap.push_back({entry.rank, left_position, left.id, right, entry.merged});
  std::push_heap(scratch.heap.begin(), scratch.heap.end(), merges_later);
}

void MergeTable::apply(std::vector<TokenId>& word, Scratch& scratch) const {
  TROUPE_ASSERT(word.size() < std::numeric_limits<int32_t>::max(), word.size());
  const auto count = static_cast<int32_t>(word.size());
  scratch.symbols.clear();
  scratch.heap.clear();
  for (int32_t i = 0; i < count; ++i)
    scratch.symbols.push_back({word[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  for (int32_t i = 0; i + 1 < count; ++i) push_candidate(i, scratch);

  auto& symbols = scratch.symbols;
  constexpr TokenId kGone = -1;  // swallowed by its left neighbour; no candidate has this id
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), merges_later);
    const Scratch::Candidate best = scratch.heap.back();
    scratch.heap.pop_back();
    Scratch::Symbol& left = symbols[static_cast<size_t>(best.position)];
    if (left.id != best.left || left.next < 0) continue;
    Scratch::Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != best.right) continue;
    left.id = best.merged;
    right.id = kGone;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.position;
    push_candidate(left.previous, scratch);
    push_candidate(best.position, scratch);
  }
  word.clear();
  for (int32_t at = count > 0 ? 0 : -1; at >= 0; at = symbols[static_cast<size_t>(at)].next)
    word.push_back(symbols[static_cast<size_t>(at)].id);
}

}  // namespace troupe
