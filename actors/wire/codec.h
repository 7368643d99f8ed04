#pragma once
// Cap'n Proto bytes <-> the values of messages.h. Pure functions, any thread.

#include "actors/wire/messages.h"
#include "troupe/transport.h"

namespace troupe::wire {

[[nodiscard]] MessageWords encode(const Message& message);

// kDataLoss: not a message of the schema, truncated, or with values out of range. kUnsupported: a
// member of the union that this build does not know (a newer peer).
[[nodiscard]] Result<Message> decode(const MessageWords& words);

}  // namespace troupe::wire
