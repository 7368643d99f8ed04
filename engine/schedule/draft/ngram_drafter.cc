#include "engine/schedule/draft/ngram_drafter.h"

#include <algorithm>

#include "base/assert.h"

namespace troupe {

namespace {

constexpr size_t kTableMin = 64;

}  // namespace

void NgramDrafter::append(std::span<const TokenId> tokens) {
  tokens_.reserve(tokens_.size() + tokens.size());
  for (const TokenId token : tokens) append(token);
}

void NgramDrafter::append(TokenId token) {
  tokens_.push_back(token);
  before_.push_back(0);
  const size_t place = tokens_.size();
  if (place < kDraftMatchTokens) return;
  if (2 * (used_ + 1) > table_.size()) grow();
  uint32_t& slot = slot_of(place);
  before_.back() = slot;
  if (slot == 0) ++used_;
  slot = static_cast<uint32_t>(place);
}

std::vector<TokenId> NgramDrafter::draft(size_t most) const {
  if (!has_draft()) return {};
  const size_t place = before_.back();
  TROUPE_ASSERT(place < tokens_.size() && same_run(place, tokens_.size()), place, tokens_.size());
  std::vector<TokenId> out;
  // Where the place overlaps the end, the guess goes on with what it has guessed so far.
  const size_t known = tokens_.size();
  for (size_t i = place; out.size() < most; ++i) {
    out.push_back(i < known ? tokens_[i] : out[i - known]);
  }
  return out;
}

// The slot of the run that ends before `place`, or the empty one where it belongs.
uint32_t& NgramDrafter::slot_of(size_t place) {
  const size_t mask = table_.size() - 1;
  size_t at = hash_of(place) & mask;
  while (table_[at] != 0 && !same_run(table_[at], place)) at = (at + 1) & mask;
  return table_[at];
}

bool NgramDrafter::same_run(size_t a, size_t b) const {
  return std::equal(tokens_.begin() + static_cast<ptrdiff_t>(a - kDraftMatchTokens),
                    tokens_.begin() + static_cast<ptrdiff_t>(a),
                    tokens_.begin() + static_cast<ptrdiff_t>(b - kDraftMatchTokens));
}

size_t NgramDrafter::hash_of(size_t place) const {
  uint64_t hash = 0;
  for (size_t i = place - kDraftMatchTokens; i < place; ++i) {
    // The odd constant nearest to 2^64 divided by the golden ratio (Knuth, volume 3, 6.4).
    hash = (hash ^ static_cast<uint32_t>(tokens_[i])) * 0x9E3779B97F4A7C15ULL;
    hash ^= hash >> 32;
  }
  return hash;
}

void NgramDrafter::grow() {
  std::vector<uint32_t> old(std::max(kTableMin, table_.size() * 2), 0);
  old.swap(table_);
  for (const uint32_t place : old) {
    if (place != 0) slot_of(place) = place;
  }
}

}  // namespace troupe
