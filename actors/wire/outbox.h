#pragma once
#include <string_view>

#include "actors/wire/messages.h"

namespace troupe::wire {

// How a core sends: the shell encodes the message and hands it to the transport.
class Outbox {
 public:
  virtual ~Outbox() = default;
  // Non-blocking. A failure means that the message will not arrive; the core decides what that
  // ends.
  [[nodiscard]] virtual Status send(std::string_view endpoint, const Message& message) = 0;
};

}  // namespace troupe::wire
