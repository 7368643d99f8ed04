#pragma once
// Every bound of the front ends, HTTP and RPC, with what happens beyond it. What is counted is
// counted over both: see frontend_load.h.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

struct FrontendLimits {
  // Open connections; one more is answered 503 and closed, by RPC only closed.
  uint32_t connections_max = 4096;
  // Requests being generated; one more is answered 429, by RPC OVERLOADED. (The serving path has
  // its own queue limit.)
  uint32_t generations_max = 1024;
  // Of a request: HTTP answers a larger body 413 without reading it. An RPC message may have twice
  // as many, so that a request which is a little too large gets an answer in words; beyond that the
  // connection is cut.
  size_t body_bytes_max = size_t{4} << 20;
  // Time for a request's header, and for its body; then 408 (body) or the connection is closed. For
  // one RPC message, from its first byte on, the latter.
  std::chrono::milliseconds header_timeout = std::chrono::seconds(15);
  std::chrono::milliseconds body_timeout = std::chrono::seconds(30);
  // An idle HTTP connection is closed after this. (An idle RPC connection may stay; the kernel
  // probes whether its peer is there.)
  std::chrono::milliseconds keep_alive = std::chrono::seconds(60);
  // Of one response that its client does not read; beyond it the request is cancelled, and the HTTP
  // connection is cut. The kernel's socket buffer comes on top.
  size_t pending_bytes_max = size_t{1} << 20;
  // Time for one write to make it into the socket, and for an RPC client to answer a chunk; a
  // client that reads nothing for so long is cut.
  std::chrono::milliseconds write_timeout = std::chrono::seconds(60);
  // Silence in an event stream after which a comment is sent, so that no proxy cuts it.
  std::chrono::milliseconds ping_interval = std::chrono::seconds(15);
  // After drain()'s deadline: time for the last error events to reach their clients.
  std::chrono::milliseconds abort_flush = std::chrono::seconds(1);
};

// Of an X-Request-Id, or of an RPC request's label, that is taken over; a longer one, or one that
// is not visible ASCII, is replaced by one of ours.
inline constexpr size_t kRequestIdBytesMax = 128;

}  // namespace troupe
