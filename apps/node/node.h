#pragma once
// A process as a part of the cluster: its transport, its actors, and who tells them of peers.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor.hpp>
#include <caf/actor_system.hpp>
#include <caf/actor_system_config.hpp>

#include "actors/wire/inbox_actor.h"
#include "actors/wire/transport_outbox.h"
#include "apps/node/node_options.h"
#include "base/clock.h"
#include "base/ids.h"
#include "transport/session/compatibility.h"
#include "troupe/transport.h"

namespace troupe {

// Threads: built, bound and destroyed on the program's main thread; tells of peers on the
// transport's.
class Node final : private PeerObserver {
 public:
  // Listens, as the options say, which are complete. The record is what other nodes must agree on
  // (transport/session/compatibility.h). kInvalidArgument: the secret is none; kUnavailable: the
  // address is taken or not of this machine. `clock` must outlive the node.
  [[nodiscard]] static Result<std::unique_ptr<Node>> start(const NodeOptions& options,
                                                           CompatibilityRecord record,
                                                           const Clock& clock);
  // Over any transport; `incarnation` grows with each start of the process.
  Node(std::unique_ptr<Transport> transport, uint64_t incarnation);
  // Unbinds everything, ends the actors and waits for them, then ends the transport.
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] Transport& transport() { return *transport_; }
  [[nodiscard]] wire::Outbox& outbox() { return outbox_; }
  [[nodiscard]] caf::actor_system& system() { return *system_; }
  [[nodiscard]] uint64_t incarnation() const { return incarnation_; }
  // At which others reach this node, HOST:PORT.
  [[nodiscard]] std::string address() const;

  // Gives the endpoint's messages to the actor, which ends with the node, and takes wire::PeerLost.
  [[nodiscard]] Status bind(const std::string& endpoint, const caf::actor& actor);
  // The same for any receiver, which must outlive the node.
  [[nodiscard]] Status bind(const std::string& endpoint, MessageReceiver& receiver);
  // From now on peers are watched, and the actors bound so far told of those that are lost.
  void watch_peers();

  // Whether the node takes part with us now; thread-safe.
  [[nodiscard]] bool is_joined(std::string_view node) const;

 private:
  void on_peer_joined(std::string_view node, uint64_t incarnation) override;
  void on_peer_lost(std::string_view node, const Status& why) override;

  const uint64_t incarnation_;
  std::unique_ptr<Transport> transport_;
  wire::TransportOutbox outbox_;
  caf::actor_system_config config_;
  std::optional<caf::actor_system> system_;
  std::vector<caf::actor> actors_;
  std::vector<std::unique_ptr<wire::ActorInbox>> inboxes_;
  std::vector<std::string> endpoints_;
};

// What every node of a cluster must agree on. Not the model: a cluster may have several, and KV
// moves only between workers whose digests are equal (actors/worker/export_orders.h).
[[nodiscard]] CompatibilityRecord common_record();

// A worker's name in messages: of its address, so that it is the same in every life.
[[nodiscard]] WorkerId worker_id_of(std::string_view endpoint);

}  // namespace troupe
