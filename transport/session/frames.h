#pragma once
// Frames on a session's connection: length (u32, little-endian), kind (u8), payload. Whoever opens
// a connection sends a hello first, whose payload starts with kSessionMagic; anything else is not a
// node.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe {

enum class FrameKind : uint8_t {
  kHello = 1,      // connector → acceptor
  kChallenge = 2,  // acceptor → connector
  kProof = 3,      // connector → acceptor
  kAccept = 4,     // acceptor → connector: joined
  kRefuse = 5,     // either: the connection ends, and why
  kPing = 6,       // either, once joined
  kPong = 7,
};

struct Frame {
  FrameKind kind{};
  std::string payload;
};

[[nodiscard]] std::string encode_frame(const Frame& frame);

// Cuts what arrives into frames, whatever the sizes in which it arrives.
class FrameReader final {
 public:
  void add(std::string_view bytes) { buffer_ += bytes; }
  // The next whole frame, or nothing yet. kDataLoss: no frame can start here; the connection is of
  // no use any more.
  [[nodiscard]] Result<std::optional<Frame>> next();

 private:
  std::string buffer_;
};

}  // namespace troupe
