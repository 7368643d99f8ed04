#pragma once
// What the heads of the lanes' active messages look like: plain structs in the byte order of the
// machines, copied in and out because UCX does not align them. Each starts with the token of its
// session, which only the two nodes know; what has an unknown one is dropped.

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace troupe::ucx {

static_assert(std::endian::native == std::endian::little, "heads travel as they lie in memory");

// kMessage: this, then the endpoint's name; the data are the message's words.
struct MessageHead {
  uint64_t token = 0;
  uint64_t sequence = 0;  // 0, 1, 2... within a session: the order of delivery
  uint64_t words = 0;
  uint64_t endpoint_bytes = 0;
};
static_assert(sizeof(MessageHead) == 32);

// kParts: this, then `chunks` times ChunkHead; the data are the chunks' bytes one after the other.
// Data that are to be received by rendezvous are of one chunk.
struct PartsHead {
  uint64_t token = 0;
  uint64_t chunks = 0;
};
static_assert(sizeof(PartsHead) == 16);

// Bytes [chunk_offset, chunk_offset + chunk_bytes) of a part. Without bytes: the sender gives the
// part up, after having sent chunk_offset bytes of it.
struct ChunkHead {
  uint64_t move = 0;  // numbers the part within the session
  uint64_t landing = 0, label_high = 0, label_low = 0;
  uint64_t part_offset = 0;  // in the landing
  uint64_t part_bytes = 0;
  uint64_t chunk_offset = 0;  // in the part
  uint64_t chunk_bytes = 0;
  uint64_t checksum = 0;  // XXH3 of the chunk's bytes
};
static_assert(sizeof(ChunkHead) == 72);

// kResults: this, then `results` times PartResult.
struct ResultsHead {
  uint64_t token = 0;
  uint64_t results = 0;
};
static_assert(sizeof(ResultsHead) == 16);

struct PartResult {
  uint64_t move = 0;
  uint64_t code = 0;  // ResultCode
};
static_assert(sizeof(PartResult) == 16);

enum ResultCode : uint64_t { kLanded = 0, kNoLanding = 1, kDoesNotFit = 2, kDamaged = 3 };

// Takes one struct from the front of `bytes`. False: they are too few.
template <class T>
[[nodiscard]] bool take(std::string_view& bytes, T& out) {
  if (bytes.size() < sizeof(T)) return false;
  std::memcpy(&out, bytes.data(), sizeof(T));
  bytes.remove_prefix(sizeof(T));
  return true;
}

template <class T>
void append(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace troupe::ucx
