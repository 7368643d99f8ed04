#include "transport/session/frames.h"

#include "base/assert.h"
#include "transport/session/bytes.h"
#include "transport/session/limits.h"

namespace troupe {
namespace {

constexpr size_t kLengthBytes = 4;

}  // namespace

std::string encode_frame(const Frame& frame) {
  TROUPE_ASSERT(frame.payload.size() < limits::kFrameBytesMax, frame.payload.size());
  ByteWriter out;
  out.u32(static_cast<uint32_t>(frame.payload.size() + 1));
  out.u8(static_cast<uint8_t>(frame.kind));
  out.raw(frame.payload);
  return out.take();
}

Result<std::optional<Frame>> FrameReader::next() {
  if (buffer_.size() < kLengthBytes) return std::optional<Frame>{};
  ByteReader in(buffer_);
  const uint32_t bytes = in.u32();
  if (bytes == 0 || bytes > limits::kFrameBytesMax) {
    return Status{StatusCode::kDataLoss, "a frame of " + std::to_string(bytes) +
                                             " bytes breaks the limit of " +
                                             std::to_string(limits::kFrameBytesMax) +
                                             "; these are not the bytes of a node"};
  }
  if (buffer_.size() < kLengthBytes + bytes) return std::optional<Frame>{};
  Frame frame;
  const uint8_t kind = in.u8();
  if (kind < static_cast<uint8_t>(FrameKind::kHello) ||
      kind > static_cast<uint8_t>(FrameKind::kPong)) {
    return Status{StatusCode::kDataLoss,
                  "a frame of kind " + std::to_string(kind) + ", which there is not"};
  }
  frame.kind = static_cast<FrameKind>(kind);
  frame.payload = std::string(in.raw(bytes - 1));
  buffer_.erase(0, kLengthBytes + bytes);
  return std::optional<Frame>(std::move(frame));
}

}  // namespace troupe
