#include "transport/loopback/loopback_transport.h"

namespace troupe {
namespace {

Status no_such_node(std::string_view node) {
  return {StatusCode::kUnavailable, "node '" + std::string(node) +
                                        "' is not reachable: this transport does not leave the "
                                        "process"};
}

}  // namespace

Status LoopbackTransport::send(std::string_view address, TrafficClass /*traffic*/,
                               MessageWords words) {
  TROUPE_RETURN_IF_ERROR(check_message_size(words));
  if (address.find('/') != std::string_view::npos) return no_such_node(node_of(address));
  if (address.empty()) return invalid_argument("an address is empty; name an endpoint");
  return endpoints_.deliver(address, std::move(words));
}

Result<BulkTicket> LoopbackTransport::expose(std::vector<std::span<std::byte>> ranges,
                                             uint64_t label_high, uint64_t label_low,
                                             LandingObserver& observer) {
  TROUPE_RETURN_IF_ERROR(memory_.check(ranges));
  return landings_.open(std::move(ranges), label_high, label_low, observer);
}

void LoopbackTransport::move(std::string_view node, const BulkTicket& ticket,
                             TrafficClass /*traffic*/, BulkPart part, MoveDone done) {
  if (node.find_first_of("/:") != std::string_view::npos) return done(no_such_node(node));
  if (Status status = check_part(part); !status.ok()) return done(std::move(status));
  if (Status status = memory_.check(part.pieces); !status.ok()) return done(std::move(status));
  const uint64_t bytes = bytes_of(part.pieces);
  const auto ranges = landings_.begin_write(ticket, part.offset, bytes);
  if (!ranges.ok()) return done(ranges.status());
  copy_pieces(part.pieces, ranges.value());
  landings_.end_write(ticket.landing, part.offset, bytes, true);
  done(ok_status());
}

}  // namespace troupe
