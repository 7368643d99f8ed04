#pragma once
// Bounds of the RPC front end beside those that it shares with HTTP (frontend_limits.h).

#include <cstddef>
#include <cstdint>

namespace troupe {

// Unanswered bytes of chunks of one stream; what comes beyond waits in the gateway and is joined.
inline constexpr size_t kRpcStreamWindowBytes = size_t{64} << 10;
// A message may have so many times FrontendLimits::body_bytes_max before the connection is cut.
inline constexpr size_t kRpcMessageBodies = 2;
// Seconds of silence after which the kernel asks whether a client is still there, seconds between
// its questions, and how many go unanswered before the connection is given up.
inline constexpr int kRpcKeepAliveIdleS = 60;
inline constexpr int kRpcKeepAliveIntervalS = 10;
inline constexpr int kRpcKeepAliveProbes = 3;

}  // namespace troupe
