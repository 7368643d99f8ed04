#pragma once
// How bytes from the transport become mail of an actor.

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/send.hpp>

#include <memory>
#include <string>

#include "troupe/transport.h"

namespace troupe::wire {

// An encoded message in an actor's mailbox; decoded on the actor's own turn.
struct Frame {
  std::shared_ptr<const MessageWords> words;  // shared because CAF's messages are copyable
};

// The transport has lost a node: mail for every actor that holds something of its peers'.
struct PeerLost {
  std::string node;
  std::string why;
};

// A receiver that puts what arrives into the actor's mailbox. Holds the actor alive.
class ActorInbox final : public MessageReceiver {
 public:
  explicit ActorInbox(caf::actor actor) : actor_(std::move(actor)) {}
  void on_message(MessageWords words) override {
    caf::anon_send(actor_, Frame{std::make_shared<const MessageWords>(std::move(words))});
  }

 private:
  caf::actor actor_;
};

}  // namespace troupe::wire

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::wire::Frame)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(troupe::wire::PeerLost)
