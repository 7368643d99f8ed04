#pragma once
// The port through which nodes and actors reach each other. It moves messages between named
// endpoints and knows neither requests nor KV nor models. Every implementation passes one
// conformance suite (tests/unit/transport/conformance.h).

#include <cstdint>
#include <string_view>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// What may overtake what when a link is busy; lower values go first.
enum class TrafficClass : uint8_t {
  kControl = 0,
  kTokens = 1,
};

// A message's payload: whole 8-byte words, so that a Cap'n Proto reader can use it in place.
using MessageWords = std::vector<uint64_t>;

// Takes what arrives at one endpoint.
class MessageReceiver {
 public:
  virtual ~MessageReceiver() = default;
  // Called on a thread of the transport or of the sender; must not block, may send. Calls for one
  // endpoint from one sender come in the order of sending.
  virtual void on_message(MessageWords words) = 0;
};

class Transport {
 public:
  virtual ~Transport() = default;

  // Makes `receiver` the owner of the endpoint's messages until unbind() has returned; it must live
  // that long. kInvalidArgument: the name is empty or taken.
  [[nodiscard]] virtual Status bind(std::string_view endpoint, MessageReceiver& receiver) = 0;
  // After it returns no call of the receiver is running or will come. Not from inside on_message().
  virtual void unbind(std::string_view endpoint) = 0;

  // Non-blocking. Ok: handed over, which is no promise of arrival. kUnavailable: nobody is there.
  // kInvalidArgument: larger than limits::kMessageBytesMax. Thread-safe.
  [[nodiscard]] virtual Status send(std::string_view endpoint, TrafficClass traffic,
                                    MessageWords words) = 0;
};

}  // namespace troupe
