#pragma once
// GET /cluster: what a router or a monitor knows of its workers and peers.

#include <span>
#include <string>

#include "actors/wire/messages.h"
#include "troupe/transport.h"

namespace troupe {

// One JSON object: {"healthy","reason","requests","workers":[{"worker","endpoint","model",
// "model_digest","role","state",
// "accepting","incarnation","requests","heard_ms","load":{…}}],"peers":[{"node","connected",
// "incarnation","transport","round_trip_seconds","clock_offset_seconds",…}]}. Incarnations are
// texts of 16 hexadecimal digits, since JSON readers round large numbers; a time that is not known
// is null. Texts of peers are escaped and made valid UTF-8.
[[nodiscard]] std::string cluster_body(const wire::Health& health,
                                       std::span<const PeerState> peers);

// The same members without the braces, for an object that has more of its own.
[[nodiscard]] std::string cluster_members(const wire::Health& health,
                                          std::span<const PeerState> peers);

// "00000000000004d2"
[[nodiscard]] std::string incarnation_text(uint64_t incarnation);

}  // namespace troupe
