#pragma once
// Finds the spellings of special tokens in text.

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"

namespace troupe {

class SpecialTokenFinder final {
 public:
  struct Spelling {
    std::string_view text;  // not empty; stays where it is while the finder lives
    TokenId id = 0;
    bool anywhere = false;  // found outside the ranges of find(), too
  };
  // A run of the text.
  struct Range {
    size_t begin = 0, end = 0;
  };
  struct Hit {
    size_t begin = 0, end = 0;
    TokenId id = 0;
  };

  // Of two equal spellings the one with the higher id counts (as in llama.cpp).
  explicit SpecialTokenFinder(std::vector<Spelling> spellings);

  // The hit that begins first at or after `from`; of several that begin there, the longest. A hit
  // lies wholly within one of `ranges` (ascending, disjoint), unless it is found anywhere.
  // O(text × log(spellings)) for spellings that share no long prefix with the text.
  [[nodiscard]] std::optional<Hit> find(std::string_view text, size_t from,
                                        std::span<const Range> ranges) const;
  // In the whole text.
  [[nodiscard]] std::optional<Hit> find(std::string_view text, size_t from) const {
    const Range whole{0, text.size()};
    return find(text, from, {&whole, 1});
  }

  // The token of exactly this spelling, or kNoToken.
  [[nodiscard]] TokenId find_exact(std::string_view spelling) const;

 private:
  // `limit`: where hits that are not found anywhere end at the latest.
  [[nodiscard]] std::optional<Hit> longest_at(std::string_view text, size_t at, size_t limit) const;

  std::vector<Spelling> spellings_;  // ascending by bytes: equal beginnings stand together
  std::array<bool, 256> begins_{};   // whether some spelling begins with this byte
};

}  // namespace troupe
