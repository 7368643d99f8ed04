#pragma once
// Sets of Unicode characters.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace troupe {

// A value: the characters that a place of a grammar may be. U+0000 and surrogates are in no set,
// not even in a complement: nothing that is generated has them.
class CodePointSet {
 public:
  using Range = std::pair<uint32_t, uint32_t>;  // both ends belong to it

  CodePointSet() = default;
  CodePointSet(std::initializer_list<Range> ranges);
  // Every character of the text, which is UTF-8.
  [[nodiscard]] static CodePointSet of(std::string_view text);

  // Precondition: low ≤ high ≤ U+10FFFF.
  void add(uint32_t low, uint32_t high);
  void add(const CodePointSet& other);
  [[nodiscard]] CodePointSet complement() const;
  [[nodiscard]] CodePointSet without(const CodePointSet& other) const;
  [[nodiscard]] bool contains(uint32_t code_point) const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  // Ascending, disjoint, never adjacent.
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

  bool operator==(const CodePointSet&) const = default;

 private:
  std::vector<Range> ranges_;
};

// The characters of a UTF-8 text; false, with some of them, when it is not UTF-8.
[[nodiscard]] bool decode_utf8(std::string_view text, std::vector<uint32_t>& code_points);
void append_utf8(uint32_t code_point, std::string& text);
// The text, or as much of it as takes at most so many bytes, whole characters, and "…".
[[nodiscard]] std::string utf8_prefix(std::string_view text, size_t bytes_max);
// Of a client's own words in an error text.
inline constexpr size_t kQuotedBytesMax = 64;

}  // namespace troupe
