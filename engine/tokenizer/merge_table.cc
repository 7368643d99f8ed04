#include "engine/tokenizer/merge_table.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/assert.h"

namespace troupe {

MergeTable::MergeTable(size_t count) {
  size_t slots = 16;
  while (slots < 2 * count) slots *= 2;
  entries_.resize(slots);
  rules_.reserve(count);
}

size_t MergeTable::position_of(uint64_t pair) const {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;
  const size_t mask = entries_.size() - 1;
  size_t at = (pair * kGoldenRatio >> 32) & mask;
  // Ends because at most half of the entries are in use.
  while (entries_[at].pair != kFree && entries_[at].pair != pair) at = (at + 1) & mask;
  return at;
}

void MergeTable::add(TokenId left, TokenId right, TokenId merged) {
  TROUPE_ASSERT(left >= 0 && right >= 0 && merged >= 0, left, right, merged);
  TROUPE_ASSERT(rules_.size() < entries_.size() / 2, rules_.size());
  const uint64_t pair = pair_of(left, right);
  Entry& entry = entries_[position_of(pair)];
  if (entry.pair == pair) return;
  entry = {pair, static_cast<uint32_t>(rules_.size())};
  rules_.push_back({left, right, merged});
}

bool MergeTable::append_candidate(int32_t left_position, Scratch& scratch) const {
  const Scratch::Symbol& left = scratch.symbols[static_cast<size_t>(left_position)];
  if (left.next < 0) return false;
  const uint64_t pair = pair_of(left.id, scratch.symbols[static_cast<size_t>(left.next)].id);
  const Entry& entry = entries_[position_of(pair)];
  if (entry.pair != pair) return false;
  scratch.heap.push_back(uint64_t{entry.rank} << 32 | static_cast<uint32_t>(left_position));
  return true;
}

void MergeTable::push_candidate(int32_t left_position, Scratch& scratch) const {
  if (append_candidate(left_position, scratch))
    std::push_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
}

void MergeTable::merge_all(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  constexpr TokenId kGone = -1;  // swallowed by its left neighbour; no rule has this id
  while (!scratch.heap.empty()) {
    std::pop_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
    const uint64_t due = scratch.heap.back();
    scratch.heap.pop_back();
    const Rule& rule = rules_[due >> 32];
    const auto position = static_cast<int32_t>(due & 0xFFFFFFFF);
    // Its symbols may have been merged with others since: then this candidate is stale.
    Scratch::Symbol& left = symbols[static_cast<size_t>(position)];
    if (left.id != rule.left || left.next < 0) continue;
    Scratch::Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != rule.right) continue;
    left.id = rule.merged;
    right.id = kGone;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = position;
    if (left.previous >= 0) push_candidate(left.previous, scratch);
    push_candidate(position, scratch);
  }
}

void MergeTable::apply(std::vector<TokenId>& word, Scratch& scratch) const {
  TROUPE_ASSERT(word.size() < std::numeric_limits<int32_t>::max(), word.size());
  const auto count = static_cast<int32_t>(word.size());
  if (count < 2) return;
  scratch.symbols.clear();
  scratch.heap.clear();
  for (int32_t i = 0; i < count; ++i)
    scratch.symbols.push_back({word[static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  for (int32_t i = 0; i + 1 < count; ++i) static_cast<void>(append_candidate(i, scratch));
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
  merge_all(scratch);
  word.clear();
  for (int32_t at = 0; at >= 0; at = scratch.symbols[static_cast<size_t>(at)].next)
    word.push_back(scratch.symbols[static_cast<size_t>(at)].id);
}

}  // namespace troupe
