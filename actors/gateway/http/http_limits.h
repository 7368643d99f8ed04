#pragma once
// Every bound of the HTTP front end, with what happens beyond it.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe {

struct HttpLimits {
  // Open connections; one more is answered 503 and closed.
  uint32_t connections_max = 4096;
  // Requests being generated; one more is answered 429. (The serving path has its own queue limit.)
  uint32_t generations_max = 1024;
  // Of a request's body; a larger one is answered 413 without being read.
  size_t body_bytes_max = size_t{4} << 20;
  // Time for a request's header, and for its body; then 408 (body) or the connection is closed.
  std::chrono::milliseconds header_timeout = std::chrono::seconds(15);
  std::chrono::milliseconds body_timeout = std::chrono::seconds(30);
  // An idle connection is closed after this.
  std::chrono::milliseconds keep_alive = std::chrono::seconds(60);
  // Of one response that its client does not read; beyond it the request is cancelled and the
  // connection is cut. The kernel's socket buffer comes on top.
  size_t pending_bytes_max = size_t{1} << 20;
  // Time for one write to make it into the socket; a client that reads nothing for so long is cut.
  std::chrono::milliseconds write_timeout = std::chrono::seconds(60);
  // Silence in an event stream after which a comment is sent, so that no proxy cuts it.
  std::chrono::milliseconds ping_interval = std::chrono::seconds(15);
  // After drain()'s deadline: time for the last error events to reach their clients.
  std::chrono::milliseconds abort_flush = std::chrono::seconds(1);
};

// Of an X-Request-Id that is taken over; a longer one, or one that is not visible ASCII, is
// replaced by one of ours.
inline constexpr size_t kRequestIdBytesMax = 128;

}  // namespace troupe
