#include "transport/ucx/ucx_transport.h"

#include "base/assert.h"
#include "transport/local/endpoint_table.h"
#include "transport/local/landing_table.h"
#include "transport/local/registered_memory.h"
#include "transport/session/limits.h"
#include "transport/session/secret.h"
#include "transport/ucx/node.h"

namespace troupe {

// In the order in which they are built; the node ends first.
struct UcxTransport::Parts {
  explicit Parts(UcxOptions o) : options(std::move(o)), landings(options.random()) {}
  const UcxOptions options;
  EndpointTable endpoints;
  RegisteredMemory memory;
  LandingTable landings;
  std::unique_ptr<ucx::Node> node;
};

Result<std::unique_ptr<UcxTransport>> UcxTransport::start(UcxOptions options, const Clock& clock) {
  TROUPE_ASSERT(options.random != nullptr);
  TROUPE_ASSIGN_OR_RETURN(Secret secret, Secret::create(options.secret));
  options.secret.clear();
  TROUPE_RETURN_IF_ERROR(check_record(options.record));
  auto parts = std::make_unique<Parts>(std::move(options));
  TROUPE_ASSIGN_OR_RETURN(parts->node, ucx::Node::start(parts->options, std::move(secret), clock,
                                                        parts->endpoints, parts->landings));
  return std::unique_ptr<UcxTransport>(new UcxTransport(std::move(parts)));
}

UcxTransport::UcxTransport(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

UcxTransport::~UcxTransport() {
  parts_->node->stop();
  parts_->landings.retract_all();
}

const std::string& UcxTransport::node() const {
  return parts_->node->name();
}

Status UcxTransport::bind(std::string_view endpoint, MessageReceiver& receiver) {
  if (endpoint.size() > limits::kEndpointNameBytesMax) {
    return invalid_argument("an endpoint's name has more than " +
                            std::to_string(limits::kEndpointNameBytesMax) + " bytes");
  }
  return parts_->endpoints.bind(endpoint, receiver);
}

void UcxTransport::unbind(std::string_view endpoint) {
  parts_->endpoints.unbind(endpoint);
}

std::string UcxTransport::address_of(std::string_view endpoint) const {
  return node() + "/" + std::string(endpoint);
}

Status UcxTransport::send(std::string_view address, TrafficClass /*traffic*/, MessageWords words) {
  TROUPE_RETURN_IF_ERROR(check_message_size(words));
  const std::string_view to = node_of(address);
  const std::string_view endpoint = to.empty() ? address : address.substr(to.size() + 1);
  if (endpoint.empty() || endpoint.size() > limits::kEndpointNameBytesMax ||
      endpoint.find('/') != std::string_view::npos) {
    return invalid_argument("'" + std::string(address.substr(0, limits::kNodeNameBytesMax)) +
                            "' is not the address of an endpoint, e.g. 10.0.0.7:7000/router");
  }
  if (to.empty() || to == node()) return parts_->endpoints.deliver(endpoint, std::move(words));
  return parts_->node->send(to, {std::string(endpoint), std::move(words)});
}

Status UcxTransport::register_memory(std::span<std::byte> memory) {
  TROUPE_RETURN_IF_ERROR(parts_->memory.add(memory));
  Status status = parts_->node->worker().map(memory);
  if (!status.ok()) parts_->memory.remove(memory);
  return status;
}

void UcxTransport::unregister_memory(std::span<std::byte> memory) {
  parts_->memory.remove(memory);
  parts_->node->worker().unmap(memory);
}

Result<BulkTicket> UcxTransport::expose(std::vector<std::span<std::byte>> ranges,
                                        uint64_t label_high, uint64_t label_low,
                                        LandingObserver& observer) {
  TROUPE_RETURN_IF_ERROR(parts_->memory.check(ranges));
  return parts_->landings.open(std::move(ranges), label_high, label_low, observer);
}

void UcxTransport::retract(uint64_t landing) {
  parts_->landings.retract(landing);
}

void UcxTransport::move(std::string_view node, const BulkTicket& ticket, TrafficClass traffic,
                        BulkPart part, MoveDone done) {
  if (Status status = check_part(part); !status.ok()) return done(std::move(status));
  if (Status status = parts_->memory.check(part.pieces); !status.ok()) {
    return done(std::move(status));
  }
  // An endpoint's address has a slash, and a node's name a colon.
  const std::string_view to = node.find('/') != std::string_view::npos   ? node_of(node)
                              : node.find(':') != std::string_view::npos ? node
                                                                         : std::string_view{};
  if (!to.empty() && to != this->node()) {
    return parts_->node->move(to, {ticket, traffic, std::move(part), std::move(done)});
  }
  const uint64_t bytes = bytes_of(part.pieces);
  const auto ranges = parts_->landings.begin_write(ticket, part.offset, bytes);
  if (!ranges.ok()) return done(ranges.status());
  copy_pieces(part.pieces, ranges.value());
  parts_->landings.end_write(ticket.landing, part.offset, bytes, true);
  done(ok_status());
}

void UcxTransport::set_peer_observer(PeerObserver* observer) {
  parts_->node->set_peer_observer(observer);
}

std::vector<PeerState> UcxTransport::peers() const {
  return parts_->node->peers();
}

}  // namespace troupe
