#pragma once
// Bounds of the client library.

#include <cstddef>

namespace troupe::client {

// Of a request; the server would cut the connection, and with it every other request on it.
inline constexpr size_t kRequestBytesMax = size_t{8} << 20;
// What a reader has not taken of one stream. One more is not acknowledged before the reader takes
// some, so the rest waits in the server.
inline constexpr size_t kStreamChunksMax = 64;

}  // namespace troupe::client
