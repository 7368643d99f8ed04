// Decodes any bytes as a message between the parts of a cluster. What can be decoded is a value:
// encoded again it decodes to the same bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "actors/wire/codec.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  troupe::MessageWords words(size / sizeof(uint64_t));
  if (!words.empty()) std::memcpy(words.data(), data, words.size() * sizeof(uint64_t));
  const auto decoded = troupe::wire::decode(words);
  if (!decoded.ok()) {
    TROUPE_ASSERT(!decoded.status().message().empty(), size);
    return 0;
  }
  const troupe::MessageWords canonical = troupe::wire::encode(decoded.value());
  const auto again = troupe::wire::decode(canonical);
  TROUPE_ASSERT(again.ok(), again.status().message());
  TROUPE_ASSERT(troupe::wire::encode(again.value()) == canonical, size);
  return 0;
}
