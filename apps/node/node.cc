#include "apps/node/node.h"

#include <algorithm>

#include <caf/send.hpp>

#include "base/assert.h"
#include "base/os/entropy.h"
#include "transport/ucx/ucx_transport.h"

namespace troupe {
namespace {

// The actors only plan and pass on; the device computes on threads of its own.
constexpr size_t kActorThreads = 1;
// Of schema/control.capnp and kv.capnp: changes when an older build would misunderstand a newer
// one.
constexpr const char* kSchemaVersion = "2";

}  // namespace

Result<std::unique_ptr<Node>> Node::start(const NodeOptions& options, CompatibilityRecord record,
                                          const Clock& clock) {
  UcxOptions ucx;
  ucx.host = options.host;
  ucx.port = options.port;
  TROUPE_ASSIGN_OR_RETURN(ucx.secret, read_secret(options.secret));
  // Grows with every start, unless the machine's clock goes back.
  ucx.incarnation = static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch() /
                                          std::chrono::nanoseconds{1});
  ucx.record = std::move(record);
  ucx.peer_timeout = std::chrono::milliseconds(options.peer_timeout_ms);
  ucx.random = entropy_u64;
  const uint64_t incarnation = ucx.incarnation;
  TROUPE_ASSIGN_OR_RETURN(auto transport, UcxTransport::start(std::move(ucx), clock));
  return std::make_unique<Node>(std::move(transport), incarnation);
}

Node::Node(std::unique_ptr<Transport> transport, uint64_t incarnation)
    : incarnation_(incarnation), transport_(std::move(transport)), outbox_(*transport_) {
  TROUPE_ASSERT(incarnation != 0, incarnation);
  // Work stealing polls when idle; sharing sleeps.
  config_.set("scheduler.policy", caf::atom("sharing"));
  config_.set("scheduler.max-threads", kActorThreads);
  system_.emplace(config_);
}

Node::~Node() {
  for (const std::string& endpoint : endpoints_) transport_->unbind(endpoint);
  transport_->set_peer_observer(nullptr);
  for (const caf::actor& actor : actors_)
    caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
  inboxes_.clear();
  actors_.clear();
  system_.reset();  // waits for the actors
}

std::string Node::address() const {
  return std::string(node_of(transport_->address_of("any")));
}

Status Node::bind(const std::string& endpoint, const caf::actor& actor) {
  actors_.push_back(actor);
  inboxes_.push_back(std::make_unique<wire::ActorInbox>(actor));
  return bind(endpoint, *inboxes_.back());
}

Status Node::bind(const std::string& endpoint, MessageReceiver& receiver) {
  TROUPE_RETURN_IF_ERROR(transport_->bind(endpoint, receiver));
  endpoints_.push_back(endpoint);
  return ok_status();
}

void Node::watch_peers() {
  transport_->set_peer_observer(this);
}

bool Node::is_joined(std::string_view node) const {
  const std::vector<PeerState> peers = transport_->peers();
  return std::any_of(peers.begin(), peers.end(),
                     [&](const PeerState& peer) { return peer.connected && peer.node == node; });
}

// The transport logs who joins and who is lost.
void Node::on_peer_joined(std::string_view /*node*/, uint64_t /*incarnation*/) {}

void Node::on_peer_lost(std::string_view node, const Status& why) {
  for (const caf::actor& actor : actors_)
    caf::anon_send(actor, wire::PeerLost{std::string(node), why.message()});
}

CompatibilityRecord common_record() {
  return {{"schema version", kSchemaVersion}, {"block tokens", std::to_string(kBlockTokens)}};
}

WorkerId worker_id_of(std::string_view endpoint) {
  // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/: short texts, nothing hostile.
  uint32_t hash = 2166136261U;
  for (const char c : endpoint) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619U;
  return WorkerId(hash);
}

}  // namespace troupe
