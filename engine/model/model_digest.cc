#include "engine/model/model_digest.h"

#include <xxhash.h>

namespace troupe {

std::string model_digest(const GgufFile& file) {
  const auto bytes = file.bytes();
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint64_t half : {hash.high64, hash.low64})
    for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(half >> shift) & 15U];
  return text;
}

}  // namespace troupe
