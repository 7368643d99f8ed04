#pragma once
// Little-endian fields one after the other, written to and read from strings of bytes.

#include <cstdint>
#include <string>
#include <string_view>

namespace troupe {

class ByteWriter final {
 public:
  void u8(uint8_t value) { out_.push_back(static_cast<char>(value)); }
  void u32(uint32_t value) { little_endian(value, 4); }
  void u64(uint64_t value) { little_endian(value, 8); }
  // With its length in front.
  void text(std::string_view value) {
    u32(static_cast<uint32_t>(value.size()));
    out_ += value;
  }
  void raw(std::string_view value) { out_ += value; }
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  void little_endian(uint64_t value, int bytes);
  std::string out_;
};

// Reads what may be truncated or made up: a read beyond the end, or of a text longer than its
// limit, makes the reader bad, and everything read from then on is zero or empty.
class ByteReader final {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] uint8_t u8() { return static_cast<uint8_t>(little_endian(1)); }
  [[nodiscard]] uint32_t u32() { return static_cast<uint32_t>(little_endian(4)); }
  [[nodiscard]] uint64_t u64() { return little_endian(8); }
  [[nodiscard]] std::string text(size_t bytes_max);
  [[nodiscard]] std::string_view raw(size_t bytes);
  // Everything was there, and nothing is left.
  [[nodiscard]] bool complete() const { return good_ && bytes_.empty(); }
  [[nodiscard]] bool good() const { return good_; }
  [[nodiscard]] size_t left() const { return bytes_.size(); }

 private:
  uint64_t little_endian(int bytes);
  std::string_view bytes_;
  bool good_ = true;
};

}  // namespace troupe
