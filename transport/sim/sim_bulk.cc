// The bulk lane of the simulated network.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "transport/sim/sim_network.h"
#include "transport/sim/sim_transport.h"

namespace troupe {

void SimNetwork::move(SimTransport& from, std::string_view address, const BulkTicket& ticket,
                      TrafficClass traffic, BulkPart part, MoveDone done) {
  if (Status status = check_part(part); !status.ok()) return done(std::move(status));
  if (Status status = from.memory_.check(part.pieces); !status.ok()) return done(std::move(status));
  const std::string_view node =
      address.find('/') == std::string_view::npos ? address : node_of(address);
  const uint64_t bytes = bytes_of(part.pieces);
  if (node.empty() || node == from.node_) {
    const auto ranges = from.landings_.begin_write(ticket, part.offset, bytes);
    if (!ranges.ok()) return done(ranges.status());
    copy_pieces(part.pieces, ranges.value());
    from.landings_.end_write(ticket.landing, part.offset, bytes, true);
    return done(ok_status());
  }
  const Lock lock(mutex_);
  const uint32_t self = from.index_, peer = index_of(node);
  Link& out = link(self, peer);
  if (out.moves >= limits::kMovesMax) {
    return done({StatusCode::kResourceExhausted, "all " + std::to_string(limits::kMovesMax) +
                                                     " parts to node '" + std::string(node) +
                                                     "' are under way; wait for one to end"});
  }
  ++out.moves;
  const uint64_t id = next_move_++;
  Move& move = moves_[id];
  move.from = self;
  move.to = peer;
  move.ticket = ticket;
  move.checksum = checksum_of(part.pieces);
  move.part = std::move(part);
  move.done = std::move(done);
  move.traffic = traffic;
  move.bytes = bytes;
  move.moved = events_.now();
  if (side_of(session(self, peer), self, peer)) {
    start_move(id);
  } else {
    out.waiting_moves.push_back(id);
    want_session(self, peer);
  }
}

// Parts that somebody waits for do not see those that nobody waits for.
void SimNetwork::start_move(uint64_t id) {
  Move& move = moves_.at(id);
  Link& out = link(move.from, move.to);
  move.epoch = session(move.from, move.to).epoch;
  move.started = true;
  const auto duration = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
      static_cast<double>(move.bytes) * options_.part_bytes_factor / out.how.bytes_per_second));
  TimePoint first = std::max(events_.now(), out.parts_free);
  if (move.traffic == TrafficClass::kBulkBackground) {
    first = std::max(first, out.background_free);
    out.background_free = first + duration;
  } else {
    out.parts_free = first + duration;
  }
  first += latency_of(out);
  out.bytes_sent += move.bytes;
  const auto when_there = [this, from = move.from, to = move.to](auto&& then) {
    return [this, from, to, then] {
      const Lock lock(mutex_);
      arrive(from, to, then);
    };
  };
  events_.at(first, when_there([this, id] { begin_write(id); }));
  events_.at(first + duration, when_there([this, id] { finish_write(id); }));
}

void SimNetwork::begin_write(uint64_t id) {
  const auto found = moves_.find(id);
  if (found == moves_.end() || found->second.done == nullptr) return;
  Move& move = found->second;
  Session& between = session(move.from, move.to);
  if (between.epoch != move.epoch || !side_of(between, move.to, move.from)) return;
  LandingTable& landings = nodes_[move.to].transport->landings_;
  auto ranges = landings.begin_write(move.ticket, move.part.offset, move.bytes);
  if (!ranges.ok()) {
    ++stats_.parts_refused;
    ++link(move.from, move.to).parts_refused;
    return acknowledge(id, ranges.status());
  }
  move.writing = std::move(ranges).value();
}

void SimNetwork::finish_write(uint64_t id) {
  const auto found = moves_.find(id);
  if (found == moves_.end() || !found->second.writing) return;
  if (found->second.done == nullptr) {  // its sender gave it up half way
    drop_write(found->second);
    moves_.erase(id);
    return;
  }
  acknowledge(id, write(found->second));
}

Status SimNetwork::write(Move& move) {
  const std::vector<std::span<std::byte>> ranges = *std::exchange(move.writing, std::nullopt);
  LandingTable& landings = nodes_[move.to].transport->landings_;
  copy_pieces(move.part.pieces, ranges);
  if (checksum_of(move.part.pieces) != move.checksum) ++stats_.parts_unstable;
  // A repetition repeats what arrived.
  const bool damaged =
      options_.part_damaged > 0 && move.copy.empty() && rng_.chance(options_.part_damaged);
  if (damaged) {
    const std::span<std::byte> hit = ranges[rng_.below(ranges.size())];
    hit[rng_.below(hit.size())] ^= std::byte{0x40};
    ++stats_.parts_damaged;
  }
  const bool landed = checksum_of(ranges) == move.checksum;
  landings.end_write(move.ticket.landing, move.part.offset, move.bytes, landed);
  if (!landed) return {StatusCode::kDataLoss, "a part was damaged on the way; move it again"};
  ++stats_.parts;
  stats_.part_bytes += move.bytes;
  stats_.part_seconds += events_.now() - move.moved;
  if (options_.ignores_fences) write_unfenced(move, ranges);
  if (options_.part_doubled > 0 && move.copy.empty() && rng_.chance(options_.part_doubled))
    write_again(move);
  return ok_status();
}

// The planted bug: a repetition that nobody asks whether the landing is still open.
void SimNetwork::write_unfenced(const Move& move, const std::vector<std::span<std::byte>>& ranges) {
  std::vector<std::byte> bytes;
  for (const auto& piece : move.part.pieces) bytes.insert(bytes.end(), piece.begin(), piece.end());
  const Duration later = std::chrono::microseconds(rng_.between(1, 2000000));
  const uint64_t life = nodes_[move.to].incarnation;
  events_.after(later, [this, to = move.to, life, ranges, bytes = std::move(bytes)] {
    const Lock lock(mutex_);
    if (nodes_[to].transport == nullptr || nodes_[to].incarnation != life) return;
    const std::span<const std::byte> piece(bytes);
    copy_pieces({&piece, 1}, ranges);
  });
}

// The same bytes once more, some time later, as from a network that repeats.
void SimNetwork::write_again(const Move& move) {
  const uint64_t id = next_move_++;
  Move& again = moves_[id];
  again.from = move.from;
  again.to = move.to;
  again.epoch = move.epoch;
  again.ticket = move.ticket;
  again.bytes = move.bytes;
  again.checksum = move.checksum;
  again.done = [](const Status& /*status*/) {};
  again.copy.reserve(move.bytes);
  for (const auto& piece : move.part.pieces) {
    again.copy.insert(again.copy.end(), piece.begin(), piece.end());
  }
  again.part.offset = move.part.offset;
  again.part.pieces = {again.copy};
  ++stats_.parts_doubled;
  const Duration later = std::chrono::microseconds(rng_.between(1, 20000));
  events_.after(later, [this, id] {
    const Lock lock(mutex_);
    begin_write(id);
    finish_write(id);
  });
}

void SimNetwork::acknowledge(uint64_t id, Status status) {
  const Move& move = moves_.at(id);
  const uint32_t from = move.from, to = move.to;
  events_.after(latency_of(link(to, from)), [this, id, from, to, status = std::move(status)] {
    const Lock lock(mutex_);
    arrive(to, from, [this, id, status] {
      if (moves_.contains(id)) end_move(id, status);
    });
  });
}

void SimNetwork::end_move(uint64_t id, Status status) {
  const auto found = moves_.find(id);
  TROUPE_ASSERT(found != moves_.end(), id);
  Move& move = found->second;
  if (move.copy.empty()) --link(move.from, move.to).moves;
  const MoveDone done = std::exchange(move.done, nullptr);
  // Half written: the receiver notices by itself, and reads the sender's memory no more.
  if (move.writing) {
    move.part.pieces.clear();
  } else {
    moves_.erase(found);
  }
  done(std::move(status));
}

void SimNetwork::end_outgoing(uint32_t self, uint32_t peer, const Status& why) {
  link(self, peer).waiting_moves.clear();
  std::vector<uint64_t> ended;
  for (const auto& [id, move] : moves_) {
    if (move.from == self && move.to == peer && move.done != nullptr) ended.push_back(id);
  }
  for (const uint64_t id : ended) end_move(id, why);
}

// Ends a write that does not come to its end. What stands there then is anybody's guess.
void SimNetwork::drop_write(Move& move) {
  if (!move.writing) return;
  const std::vector<std::span<std::byte>> ranges = *std::exchange(move.writing, std::nullopt);
  const std::span<std::byte> hit = ranges[rng_.below(ranges.size())];
  std::memset(hit.data(), 0xa5, rng_.below(hit.size() + 1));
  nodes_[move.to].transport->landings_.end_write(move.ticket.landing, move.part.offset, move.bytes,
                                                 false);
}

}  // namespace troupe
