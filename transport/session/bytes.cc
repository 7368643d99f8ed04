#include "transport/session/bytes.h"

namespace troupe {

void ByteWriter::little_endian(uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
}

uint64_t ByteReader::little_endian(int bytes) {
  const std::string_view field = raw(static_cast<size_t>(bytes));
  uint64_t value = 0;
  for (size_t i = 0; i < field.size(); ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(field[i])) << (8 * i);
  }
  return value;
}

std::string ByteReader::text(size_t bytes_max) {
  const uint32_t bytes = u32();
  if (bytes > bytes_max) good_ = false;
  return std::string(raw(bytes));
}

std::string_view ByteReader::raw(size_t bytes) {
  if (!good_ || bytes > bytes_.size()) {
    good_ = false;
    return {};
  }
  const std::string_view out = bytes_.substr(0, bytes);
  bytes_.remove_prefix(bytes);
  return out;
}

}  // namespace troupe
