#include "engine/tokenizer/score_merger.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "base/assert.h"
#include "engine/tokenizer/utf8.h"

namespace troupe {

ScoreMerger::ScoreMerger(const std::vector<Piece>& pieces) : index_(pieces.size()) {
  std::vector<float> scores;
  scores.reserve(pieces.size());
  for (const Piece& piece : pieces) scores.push_back(piece.score);
  std::sort(scores.begin(), scores.end(), std::greater<>());
  scores.erase(std::unique(scores.begin(), scores.end()), scores.end());
  for (const Piece& piece : pieces) {
    TROUPE_ASSERT(!piece.text.empty() && piece.id >= 0, piece.id);
    index_.set(piece.text, piece.id);
    longest_ = std::max(longest_, piece.text.size());
    const auto id = static_cast<size_t>(piece.id);
    if (ranks_.size() <= id) ranks_.resize(id + 1);
    ranks_[id] = static_cast<uint32_t>(
        std::lower_bound(scores.begin(), scores.end(), piece.score, std::greater<>()) -
        scores.begin());
  }
}

bool ScoreMerger::append_candidate(int32_t left_position, Scratch& scratch) const {
  const Symbol& left = scratch.symbols[static_cast<size_t>(left_position)];
  if (left.next < 0) return false;
  const uint32_t size = left.size + scratch.symbols[static_cast<size_t>(left.next)].size;
  if (size > longest_) return false;
  const TokenId id = index_.find(scratch.text.substr(left.begin, size));
  if (id == kNoToken) return false;
  const uint64_t rank = ranks_[static_cast<size_t>(id)];
  scratch.heap.push_back({rank << 32 | static_cast<uint32_t>(left_position), size});
  return true;
}

void ScoreMerger::merge_all(Scratch& scratch) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  const auto push = [&](int32_t left_position) {
    if (append_candidate(left_position, scratch))
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Candidate candidate = heap.back();
    heap.pop_back();
    const auto position = static_cast<int32_t>(candidate.due & 0xFFFFFFFF);
    // Its symbols may have been joined with others since: then this candidate is stale.
    Symbol& left = symbols[static_cast<size_t>(position)];
    if (left.size == 0 || left.next < 0) continue;
    Symbol& right = symbols[static_cast<size_t>(left.next)];
    if (left.size + right.size != candidate.size) continue;
    left.size = candidate.size;
    right.size = 0;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = position;
    if (left.previous >= 0) push(left.previous);
    push(position);
  }
}

void ScoreMerger::split(std::string_view text, std::vector<Part>& parts) const {
  TROUPE_ASSERT(text.size() < std::numeric_limits<int32_t>::max(), text.size());
  if (text.empty()) return;
  Scratch scratch;
  scratch.text = text;
  for (size_t at = 0; at < text.size();) {
    const Utf8Prefix prefix = utf8_prefix(text.substr(at));
    TROUPE_ASSERT(prefix.kind == Utf8Kind::kCharacter, at);
    const auto position = static_cast<int32_t>(scratch.symbols.size());
    scratch.symbols.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(prefix.size),
                               position - 1, position + 1});
    at += prefix.size;
  }
  scratch.symbols.back().next = -1;
  for (size_t i = 0; i + 1 < scratch.symbols.size(); ++i)
    static_cast<void>(append_candidate(static_cast<int32_t>(i), scratch));
  std::make_heap(scratch.heap.begin(), scratch.heap.end(), std::greater<>());
  merge_all(scratch);
  for (int32_t at = 0; at >= 0; at = scratch.symbols[static_cast<size_t>(at)].next) {
    const Symbol& symbol = scratch.symbols[static_cast<size_t>(at)];
    const std::string_view part = text.substr(symbol.begin, symbol.size);
    parts.push_back({part, index_.find(part)});
  }
}

}  // namespace troupe
