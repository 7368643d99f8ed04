#include "base/config/nearest.h"

#include <algorithm>

namespace troupe {
namespace {

constexpr size_t kNameBytesMax = 64;  // longer ones are no mistyped names
constexpr size_t kBegunBytesMin = 4;  // of a name's beginning that stands for the name

// Damerau's and Levenshtein's distance: characters added, left out, changed, or swapped with their
// neighbour; no character is touched twice.
size_t mistakes(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  const auto same = [&](size_t i, size_t j) { return (a[i] == '_' ? '-' : a[i]) == b[j]; };
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = cost[i - 1][j - 1] + (same(i - 1, j - 1) ? 0 : 1);
      cost[i][j] = std::min({changed, cost[i - 1][j] + 1, cost[i][j - 1] + 1});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& known) {
  if (name.empty() || name.size() > kNameBytesMax) return std::nullopt;
  std::optional<std::string> best;
  size_t fewest = std::max<size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const bool begun = name.size() >= kBegunBytesMin && candidate.starts_with(name);
    const size_t count = begun ? 1 : mistakes(name, candidate);
    if (count < fewest && count < candidate.size()) {
      fewest = count;
      best = candidate;
    }
  }
  return best;
}

}  // namespace troupe
