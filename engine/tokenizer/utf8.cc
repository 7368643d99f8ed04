#include "engine/tokenizer/utf8.h"

#include <cstdint>
#include <cstring>

#include "base/assert.h"

namespace troupe {
namespace {

// Of a lead byte: how long its character is (0: it leads none) and what its second byte may be. The
// ranges of the second byte exclude overlong forms, surrogates and what lies above U+10FFFF.
struct LeadRule {
  size_t size = 0;
  uint8_t second_min = 0x80, second_max = 0xBF;
};

LeadRule rule_of(uint8_t lead) {
  if (lead < 0x80) return {1};
  if (lead < 0xC2) return {0};
  if (lead < 0xE0) return {2};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

}  // namespace

Utf8Prefix utf8_prefix(std::string_view bytes) {
  TROUPE_ASSERT(!bytes.empty());
  const auto byte = [bytes](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const LeadRule rule = rule_of(byte(0));
  if (rule.size == 0) return {Utf8Kind::kInvalid, 1};
  for (size_t i = 1; i < rule.size; ++i) {
    if (i == bytes.size()) return {Utf8Kind::kIncomplete, i};
    const uint8_t low = i == 1 ? rule.second_min : 0x80;
    const uint8_t high = i == 1 ? rule.second_max : 0xBF;
    if (byte(i) < low || byte(i) > high) return {Utf8Kind::kInvalid, i};
  }
  return {Utf8Kind::kCharacter, rule.size};
}

std::optional<size_t> find_invalid_utf8(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size()) {
    uint64_t eight = 0;
    if (bytes.size() - at >= sizeof eight) {
      std::memcpy(&eight, bytes.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {  // eight ASCII characters
        at += sizeof eight;
        continue;
      }
    }
    const Utf8Prefix prefix = utf8_prefix(bytes.substr(at));
    if (prefix.kind != Utf8Kind::kCharacter) return at;
    at += prefix.size;
  }
  return std::nullopt;
}

}  // namespace troupe
