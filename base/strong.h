#pragma once
// Strong types for ids, indices and counts: two kinds never mix without a named conversion.

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>

namespace troupe {

template <class Tag, class Representation = uint64_t>
struct Strong {
  Representation value{};
  constexpr Strong() = default;
  constexpr explicit Strong(Representation v) : value(v) {}
  constexpr auto operator<=>(const Strong&) const = default;
  friend std::ostream& operator<<(std::ostream& out, Strong s) { return out << s.value; }
};

}  // namespace troupe

template <class Tag, class Representation>
struct std::hash<troupe::Strong<Tag, Representation>> {
  size_t operator()(troupe::Strong<Tag, Representation> s) const noexcept {
    return std::hash<Representation>{}(s.value);
  }
};
