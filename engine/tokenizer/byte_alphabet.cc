#include "engine/tokenizer/byte_alphabet.h"

#include "base/assert.h"

namespace troupe {

ByteAlphabet::ByteAlphabet() {
  bytes_of_.fill(-1);
  uint32_t next_substitute = 0x100;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    // The printable characters of Latin-1 spell themselves, all other bytes follow from U+0100 on.
    const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
    const uint32_t code_point = printable ? byte : next_substitute++;
    bytes_of_[code_point] = static_cast<int16_t>(byte);
    if (code_point < 0x80) {
      spellings_[byte] = static_cast<char>(code_point);
    } else {
      spellings_[byte] = {static_cast<char>(0xC0 | code_point >> 6),
                          static_cast<char>(0x80 | (code_point & 0x3F))};
    }
  }
  TROUPE_ASSERT(next_substitute == kCodePointEnd, next_substitute);
}

bool ByteAlphabet::decode(std::string_view spelled, std::string& bytes) const {
  const size_t size_before = bytes.size();
  size_t at = 0;
  while (at < spelled.size()) {
    const auto lead = static_cast<uint8_t>(spelled[at]);
    const auto second = static_cast<uint8_t>(at + 1 < spelled.size() ? spelled[at + 1] : '\0');
    uint32_t code_point = kCodePointEnd;  // for anything that is no one- or two-byte character
    if (lead < 0x80) {
      code_point = lead;
      at += 1;
    } else if (lead >= 0xC2 && lead < 0xE0 && (second & 0xC0) == 0x80) {
      code_point = static_cast<uint32_t>(lead & 0x1F) << 6 | (second & 0x3F);
      at += 2;
    }
    const int16_t byte = code_point < kCodePointEnd ? bytes_of_[code_point] : int16_t{-1};
    if (byte < 0) {
      bytes.resize(size_before);
      return false;
    }
    bytes.push_back(static_cast<char>(byte));
  }
  return true;
}

}  // namespace troupe
