#pragma once
// The limits of what travels and waits between the parts. A room's own limits stand in a limits.h
// of its own; the answer when a limit is hit stands beside each.

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace troupe::limits {

// One message between endpoints; larger ones are refused by the sender's transport.
inline constexpr size_t kMessageBytesMax = size_t{64} << 20;

// Messages that wait for their way to one node, in bytes; further ones are refused with
// kResourceExhausted.
inline constexpr size_t kSendQueueBytesMax = size_t{256} << 20;

// Parts under way from one node to another; further ones end at once with kResourceExhausted.
inline constexpr size_t kMovesMax = 65536;

// Landings open at one node; more are refused with kResourceExhausted.
inline constexpr size_t kLandingsMax = 16384;
// Ranges of one landing, and pieces of one part; more are refused with kInvalidArgument.
inline constexpr size_t kLandingRangesMax = size_t{1} << 20;

// Nodes that one node knows of; further ones are refused with kResourceExhausted.
inline constexpr size_t kPeersMax = 1024;

// Keepalives between nodes: sent this often; a node silent for the timeout is lost.
inline constexpr std::chrono::milliseconds kKeepaliveInterval{100};
inline constexpr std::chrono::milliseconds kKeepaliveTimeout{450};

// Choices of one request (`n`); more are refused with kInvalidArgument.
inline constexpr uint32_t kChoicesMax = 128;

// Requests that the router keeps in flight per cluster unless configured otherwise; further ones
// are rejected at once with kResourceExhausted and a time to retry after.
inline constexpr uint32_t kRequestsInFlightDefault = 1024;

// Heartbeats: sent this often; a worker silent for the timeout is dead for the router. That a node
// is gone is noticed sooner, by the keepalives above; this is for a worker that hangs in a process
// that lives.
inline constexpr std::chrono::milliseconds kHeartbeatInterval{100};
inline constexpr std::chrono::milliseconds kHeartbeatTimeout{2000};

// Workers that one router knows; further ones are refused. One that is lost is remembered, for
// people, for so long.
inline constexpr size_t kWorkersMax = 4096;
inline constexpr std::chrono::seconds kLostWorkerKept{60};
// Blocks of one worker that a router's prefix index remembers; the least recently used are
// forgotten.
inline constexpr size_t kIndexedBlocksMax = 65536;
// Endpoints besides its gateways that a router tells of health; further ones are not heard.
inline constexpr size_t kObserversMax = 64;

// Who looks for missing heartbeats later than this after its last look was not running itself (a
// stopped process, a paused machine): the silence meanwhile proves nothing and does not count.
inline constexpr std::chrono::milliseconds kOwnPause{500};

// An import of KV has this many times its predicted duration, and never less than the floor: the
// first ones are predicted from little.
inline constexpr double kImportDeadlineFactor = 3.0;
inline constexpr std::chrono::milliseconds kImportDeadlineFloor{1000};
inline constexpr std::chrono::milliseconds kImportDeadlineUnknown{10000};

// A step is stalled when it runs longer than this factor over its prediction, and longer than the
// floor, which covers a machine that pages or is suspended for a moment.
inline constexpr double kStallFactor = 3.0;
inline constexpr std::chrono::milliseconds kStallFloor{10000};

// How long a first SIGTERM lets running requests go on.
inline constexpr std::chrono::seconds kDrainDeadline{30};

}  // namespace troupe::limits
