#pragma once
// How much of the lanes' traffic is handed to UCX at once, and in which portions. What waits beyond
// that, waits in queues of ours, where it can be overtaken and dropped.

#include <chrono>
#include <cstddef>

namespace troupe::limits {

// Messages handed to UCX and not yet completed, per peer.
inline constexpr size_t kMessagesInFlightMax = 64;
// Messages sent after the first one that is not completed. The receiver takes no more, and no more
// of their bytes than kSendQueueBytesMax.
inline constexpr size_t kMessagesAheadMax = 4096;
inline constexpr size_t kMessageBytesAheadMax = size_t{64} << 20;

// A part travels in chunks, each with its own checksum. A chunk that is contiguous on the sender's
// side and at least this long is received straight into the landing (rendezvous).
inline constexpr size_t kRendezvousBytesMin = size_t{256} << 10;
inline constexpr size_t kRendezvousBytesMax = size_t{2} << 20;
inline constexpr size_t kRendezvousInFlightMax = 8;
// Others are gathered into frames of at most so many bytes, which are copied out on arrival while
// they are in the processor's cache.
inline constexpr size_t kFrameDataBytesMax = 61440;
inline constexpr size_t kFrameChunksMax = 64;
inline constexpr size_t kFramePiecesMax = 128;
inline constexpr size_t kFramesInFlightMax = 16;
// Sent in a row to one peer before sockets and other peers are looked at: keepalives wait
// meanwhile.
inline constexpr size_t kFramesPerTurnMax = 32;
inline constexpr size_t kMessagesPerTurnMax = 256;
inline constexpr size_t kMessageBytesPerTurnMax = size_t{4} << 20;
// Parts that nobody waits for leave the lane free for those that somebody does.
inline constexpr size_t kBackgroundInFlightMax = 1;

inline constexpr size_t kResultsPerMessageMax = 128;

// How long the progress thread sleeps at most: the resolution of all deadlines.
inline constexpr std::chrono::milliseconds kTick{20};
// Rounds of UCX progress before sockets and queues are looked at again.
inline constexpr int kProgressRoundsMax = 8;

// Peers that were not heard of for so long and have nothing queued are forgotten.
inline constexpr std::chrono::seconds kPeerForgotten{60};

// How long UCX may take to find out for itself that a lost peer is gone: where nothing is under way
// to it, and where something is. The system gives up on a lost peer's sockets after kSocketPatience
// without progress, which is how UCX learns of it.
inline constexpr std::chrono::milliseconds kCloseGrace{100};
inline constexpr std::chrono::seconds kCloseGraceBusy{15};
inline constexpr std::chrono::milliseconds kSocketPatience{1000};
// The end of an endpoint that UCX was told to close by force.
inline constexpr std::chrono::seconds kCloseDeadline{5};
// The end of what UCX does on its own when the node ends.
inline constexpr std::chrono::milliseconds kFlushDeadline{250};

}  // namespace troupe::limits
