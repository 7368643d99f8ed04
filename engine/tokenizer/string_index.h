#pragma once
// A map from strings to token ids, built once: one flat array, because loading 49,152 tokens and
// 48,900 merges makes 200,000 look-ups and start-up time is felt.

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "engine/tokenizer/tokenizer_spec.h"

namespace troupe {

class StringIndex final {
 public:
  // For at most `count` strings.
  explicit StringIndex(size_t count) {
    size_t slots = 16;
    while (slots < 2 * count) slots *= 2;
    slots_.resize(slots);
  }

  // `text` must stay where it is while the index lives. A string that is already there gets the new
  // id.
  void set(std::string_view text, TokenId id) {
    TROUPE_ASSERT(id >= 0 && used_ < slots_.size() / 2 + 1, id, used_);
    Slot& slot = slots_[position_of(text)];
    if (slot.id == kNoToken) ++used_;
    slot = {text, id};
  }

  // kNoToken when it is not there.
  [[nodiscard]] TokenId find(std::string_view text) const { return slots_[position_of(text)].id; }

 private:
  struct Slot {
    std::string_view text;
    TokenId id = kNoToken;
  };

  // Of the slot that holds `text` or the free one that would. Ends because at most half are in use.
  [[nodiscard]] size_t position_of(std::string_view text) const {
    const size_t mask = slots_.size() - 1;
    size_t at = std::hash<std::string_view>{}(text)&mask;
    while (slots_[at].id != kNoToken && slots_[at].text != text) at = (at + 1) & mask;
    return at;
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace troupe
