#pragma once
// GPT-2's byte alphabet: vocabularies of byte-level BPE spell each byte as one printable character,
// so that a space is written "Ġ". Source: bytes_to_unicode() in OpenAI's gpt-2 repository.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

class ByteAlphabet final {
 public:
  ByteAlphabet();

  // The character that spells `byte`, as UTF-8 (one or two bytes).
  [[nodiscard]] const std::string& spelling(uint8_t byte) const { return spellings_[byte]; }

  // Appends the bytes that `spelled` stands for. False, with nothing appended, when it has a
  // character outside the alphabet: then the text stands for itself.
  [[nodiscard]] bool decode(std::string_view spelled, std::string& bytes) const;

 private:
  // The alphabet's characters are U+0021 to U+0143.
  static constexpr size_t kCodePointEnd = 0x144;
  std::array<std::string, 256> spellings_;
  std::array<int16_t, kCodePointEnd> bytes_of_;  // -1: not in the alphabet
};

}  // namespace troupe
