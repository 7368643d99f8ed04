#pragma once
// The limits of joining and staying joined. Whoever breaks one is disconnected, with one log line.

#include <chrono>
#include <cstddef>

namespace troupe::limits {

// One frame of the session's connection, with its kind but without its length.
inline constexpr size_t kFrameBytesMax = size_t{32} << 10;

// A secret shorter than this can be guessed offline by whoever once joined with it, or listened.
inline constexpr size_t kSecretBytesMin = 16;
inline constexpr size_t kSecretBytesMax = 4096;

inline constexpr size_t kNodeNameBytesMax = 255;
inline constexpr size_t kEndpointNameBytesMax = 255;

// The compatibility record.
inline constexpr size_t kRecordFieldsMax = 64;
inline constexpr size_t kRecordNameBytesMax = 64;
inline constexpr size_t kRecordValueBytesMax = 256;

// What the data lanes of a node need to be reached; opaque here.
inline constexpr size_t kLaneAddressBytesMax = 8192;

// From the first byte to the end of the handshake, for a connection that somebody else opened.
inline constexpr std::chrono::milliseconds kHandshakeDeadline{2000};
// From the first wish to reach a node to on_peer_lost(), all tries together.
inline constexpr std::chrono::milliseconds kConnectDeadline{2000};
// Between two tries: doubles from the first to the last.
inline constexpr std::chrono::milliseconds kConnectBackoffMin{20};
inline constexpr std::chrono::milliseconds kConnectBackoffMax{320};
// After a refusal that trying again cannot change, sends fail at once for this long.
inline constexpr std::chrono::milliseconds kRefusedPause{1000};

// Connections that have not proved anything yet; further ones are closed at once.
inline constexpr size_t kUnprovedConnectionsMax = 64;

// Whoever looks for silent peers later than this after its last look did not run itself: what they
// sent meanwhile may still lie unread.
inline constexpr std::chrono::milliseconds kKeepaliveOwnPause{150};

// Round trips kept for the estimate of a clock's offset.
inline constexpr size_t kClockSamplesMax = 16;

}  // namespace troupe::limits
