#include "engine/tokenizer/special_token_finder.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/assert.h"
#include "engine/tokenizer/tokenizer_spec.h"

namespace troupe {

SpecialTokenFinder::SpecialTokenFinder(std::vector<Spelling> spellings)
    : spellings_(std::move(spellings)) {
  std::sort(spellings_.begin(), spellings_.end(), [](const Spelling& a, const Spelling& b) {
    return a.text != b.text ? a.text < b.text : a.id > b.id;
  });
  const auto same_text = [](const Spelling& a, const Spelling& b) { return a.text == b.text; };
  spellings_.erase(std::unique(spellings_.begin(), spellings_.end(), same_text), spellings_.end());
  for (const Spelling& spelling : spellings_) {
    TROUPE_ASSERT(!spelling.text.empty(), spelling.id);
    begins_[static_cast<uint8_t>(spelling.text[0])] = true;
  }
}

std::optional<SpecialTokenFinder::Hit> SpecialTokenFinder::find(
    std::string_view text, size_t from, std::span<const Range> ranges) const {
  auto range = std::partition_point(ranges.begin(), ranges.end(),
                                    [&](const Range& one) { return one.end <= from; });
  for (size_t at = from; at < text.size(); ++at) {
    if (range != ranges.end() && range->end <= at) ++range;
    if (!begins_[static_cast<uint8_t>(text[at])]) continue;
    const bool inside = range != ranges.end() && range->begin <= at;
    if (const auto hit = longest_at(text, at, inside ? range->end : at)) return hit;
  }
  return std::nullopt;
}

std::optional<SpecialTokenFinder::Hit> SpecialTokenFinder::longest_at(std::string_view text,
                                                                      size_t at,
                                                                      size_t limit) const {
  // [first, last) are the spellings whose first `depth` bytes stand at `at`.
  auto first = spellings_.begin(), last = spellings_.end();
  std::optional<Hit> longest;
  for (size_t depth = 0; first != last; ++depth) {
    if (first->text.size() == depth) {  // the shortest of those with this beginning stands first
      if (first->anywhere || at + depth <= limit) longest = Hit{at, at + depth, first->id};
      ++first;
    }
    if (at + depth == text.size()) break;
    const auto wanted = static_cast<uint8_t>(text[at + depth]);
    const auto byte_at_depth = [depth](const Spelling& spelling) {
      return static_cast<uint8_t>(spelling.text[depth]);
    };
    first = std::partition_point(
        first, last, [&](const Spelling& spelling) { return byte_at_depth(spelling) < wanted; });
    last = std::partition_point(
        first, last, [&](const Spelling& spelling) { return byte_at_depth(spelling) == wanted; });
  }
  return longest;
}

TokenId SpecialTokenFinder::find_exact(std::string_view spelling) const {
  if (spelling.empty()) return kNoToken;
  const auto hit = longest_at(spelling, 0, spelling.size());
  return hit && hit->end == spelling.size() ? hit->id : kNoToken;
}

}  // namespace troupe
