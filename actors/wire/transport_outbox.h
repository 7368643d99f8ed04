#pragma once
#include "actors/wire/codec.h"
#include "actors/wire/outbox.h"

namespace troupe::wire {

// Outbox over a transport. Thread-safe as the transport is.
class TransportOutbox final : public Outbox {
 public:
  explicit TransportOutbox(Transport& transport) : transport_(transport) {}
  [[nodiscard]] Status send(std::string_view endpoint, const Message& message) override {
    const auto traffic =
        std::holds_alternative<Emitted>(message) ? TrafficClass::kTokens : TrafficClass::kControl;
    return transport_.send(endpoint, traffic, encode(message));
  }

 private:
  Transport& transport_;
};

}  // namespace troupe::wire
