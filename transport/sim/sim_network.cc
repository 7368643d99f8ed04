#include "transport/sim/sim_network.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/limits.h"
#include "transport/session/limits.h"
#include "transport/sim/sim_transport.h"

namespace troupe {
namespace {

Duration seconds(double value) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(value));
}

}  // namespace

SimNetwork::SimNetwork(EventQueue& events, SeededRng& rng, SimNetworkOptions options)
    : events_(events), rng_(rng), options_(options) {}

SimNetwork::~SimNetwork() {
  for (const Node& node : nodes_) TROUPE_ASSERT(node.transport == nullptr, node.name);
}

uint32_t SimNetwork::index_of(std::string_view name) {
  const auto found = indices_.find(name);
  if (found != indices_.end()) return found->second;
  const auto index = static_cast<uint32_t>(nodes_.size());
  nodes_.emplace_back().name = name;
  indices_.emplace(std::string(name), index);
  return index;
}

SimNetwork::Link& SimNetwork::link(uint32_t from, uint32_t to) {
  const auto [place, is_new] = links_.try_emplace({from, to});
  if (is_new) place->second.how = options_.link;
  return place->second;
}

Duration SimNetwork::latency_of(const Link& link) {
  if (link.how.jitter_max == Duration{0}) return link.how.latency;
  return link.how.latency +
         seconds(rng_.uniform() * 1e-9 * static_cast<double>(link.how.jitter_max.count()));
}

// --- Faults

void SimNetwork::set_link(const std::string& from, const std::string& to, const SimLink& how) {
  const Lock lock(mutex_);
  link(index_of(from), index_of(to)).how = how;
}

void SimNetwork::block(const std::string& from, const std::string& to) {
  const Lock lock(mutex_);
  const uint32_t a = index_of(from), b = index_of(to);
  ++link(a, b).blocks;
  update_silence(a, b);
}

void SimNetwork::unblock(const std::string& from, const std::string& to) {
  const Lock lock(mutex_);
  const uint32_t a = index_of(from), b = index_of(to);
  TROUPE_ASSERT(link(a, b).blocks > 0, from, to);
  --link(a, b).blocks;
  update_silence(a, b);
  arrive(a, b, nullptr);
}

void SimNetwork::freeze(const std::string& node) {
  const Lock lock(mutex_);
  const uint32_t index = index_of(node);
  nodes_[index].frozen = true;
  update_silence_of(index);
}

void SimNetwork::thaw(const std::string& node) {
  const Lock lock(mutex_);
  const uint32_t index = index_of(node);
  nodes_[index].frozen = false;
  update_silence_of(index);
  for (uint32_t other = 0; other < nodes_.size(); ++other) {
    const auto found = links_.find({other, index});
    if (found == links_.end()) continue;
    // It looks for silent peers again, and was not running itself before.
    found->second.silent = false;
    update_silence(other, index);
    arrive(other, index, nullptr);
  }
}

void SimNetwork::hide_death(const std::string& node) {
  const Lock lock(mutex_);
  nodes_[index_of(node)].hides_death = true;
}

void SimNetwork::update_silence_of(uint32_t node) {
  for (uint32_t other = 0; other < nodes_.size(); ++other) {
    if (links_.contains({node, other})) update_silence(node, other);
  }
}

// A keepalive was heard up to one interval before the silence began.
void SimNetwork::update_silence(uint32_t from, uint32_t to) {
  Link& changed = link(from, to);
  const Node& sender = nodes_[from];
  const bool silent =
      changed.blocks > 0 || sender.frozen || (sender.transport == nullptr && sender.hides_death);
  if (silent == changed.silent) return;
  changed.silent = silent;
  const uint64_t number = ++changed.silences;
  if (!silent) return;
  const auto timeout =
      limits::kKeepaliveTimeout -
      seconds(rng_.uniform() * 1e-3 * static_cast<double>(limits::kKeepaliveInterval.count()));
  events_.after(timeout, [this, from, to, number] {
    const Lock lock(mutex_);
    if (link(from, to).silences != number || nodes_[to].frozen) return;
    lose(to, from, "it has been silent for too long");
  });
}

// --- Nodes

void SimNetwork::attach(SimTransport& transport) {
  const Lock lock(mutex_);
  const uint32_t index = index_of(transport.node_);
  Node& node = nodes_[index];
  TROUPE_ASSERT(node.transport == nullptr, node.name);
  TROUPE_ASSERT(transport.incarnation_ > node.incarnation, node.name, node.incarnation);
  transport.index_ = index;
  node.transport = &transport;
  node.incarnation = transport.incarnation_;
  node.hides_death = false;
  update_silence_of(index);
  // Whoever still believes in a session with its former life finds out now.
  for (auto& [pair, session] : sessions_) {
    if (pair.first != index && pair.second != index) continue;
    const uint32_t peer = pair.first == index ? pair.second : pair.first;
    if (!side_of(session, peer, index)) continue;
    const uint64_t epoch = session.epoch;
    events_.after(link(index, peer).how.latency, [this, index, peer, epoch] {
      const Lock inner(mutex_);
      if (this->session(index, peer).epoch == epoch) lose(peer, index, "it was restarted");
    });
  }
}

void SimNetwork::detach(SimTransport& transport) {
  const Lock lock(mutex_);
  const uint32_t self = transport.index_;
  const Status ended(StatusCode::kUnavailable, "this node has ended");
  transport.observer_ = nullptr;
  for (uint32_t peer = 0; peer < nodes_.size(); ++peer) {
    const auto found = sessions_.find(std::minmax(self, peer));
    if (peer == self || found == sessions_.end()) continue;
    Session& session = found->second;
    side_of(session, self, peer) = false;
    end_outgoing(self, peer, ended);
    for (auto& [id, move] : moves_) {
      if (move.to == self && move.from == peer) drop_write(move);
    }
    Link& out = link(self, peer);
    for (const Message& message : out.waiting) out.queued_bytes -= message.bytes();
    out.waiting.clear();
    if (session.joining) {
      session.joining = false;
      ++session.joins;
      if (!link(peer, self).waiting.empty() || !link(peer, self).waiting_moves.empty()) {
        want_session(peer, self);
      }
    }
    if (nodes_[self].hides_death || !side_of(session, peer, self)) continue;
    const uint64_t epoch = session.epoch;
    events_.after(out.how.latency, [this, self, peer, epoch] {
      const Lock inner(mutex_);
      if (this->session(self, peer).epoch == epoch) lose(peer, self, "it closed the connection");
    });
  }
  nodes_[self].transport = nullptr;
  nodes_[self].frozen = false;
  update_silence_of(self);
}

// --- Messages

Status SimNetwork::send(SimTransport& from, std::string_view address, MessageWords words) {
  TROUPE_RETURN_IF_ERROR(check_message_size(words));
  if (address.empty()) return invalid_argument("an address is empty; name an endpoint");
  const std::string_view node = node_of(address);
  if (node.empty() || node == from.node_) {
    const size_t slash = address.rfind('/');
    const auto name = slash == std::string_view::npos ? address : address.substr(slash + 1);
    return from.endpoints_.deliver(name, std::move(words));
  }
  const Lock lock(mutex_);
  const uint32_t self = from.index_, peer = index_of(node);
  Message message{std::string(address.substr(node.size() + 1)), std::move(words)};
  Link& out = link(self, peer);
  if (out.queued_bytes + message.bytes() > limits::kSendQueueBytesMax) {
    return {StatusCode::kResourceExhausted,
            "the queue to node '" + std::string(node) + "' is full; retry when it has drained"};
  }
  out.queued_bytes += message.bytes();
  queue_bytes_most_ = std::max(queue_bytes_most_, out.queued_bytes);
  Session& between = session(self, peer);
  if (side_of(between, self, peer)) {
    transmit(self, peer, std::move(message));
  } else {
    out.waiting.push_back(std::move(message));
    want_session(self, peer);
  }
  return ok_status();
}

void SimNetwork::transmit(uint32_t from, uint32_t to, Message message) {
  Link& out = link(from, to);
  const size_t bytes = message.bytes();
  const TimePoint sent = std::max(events_.now(), out.messages_free) +
                         seconds(static_cast<double>(bytes) / out.how.bytes_per_second);
  out.messages_free = sent;
  out.last_arrival = std::max(out.last_arrival, sent + latency_of(out));
  ++out.messages_sent;
  out.bytes_sent += bytes;
  ++stats_.messages;
  stats_.message_bytes += bytes;
  const uint64_t epoch = session(from, to).epoch;
  const bool doubled = options_.message_doubled > 0 && rng_.chance(options_.message_doubled);
  events_.at(
      out.last_arrival, [this, from, to, epoch, doubled, message = std::move(message)]() mutable {
        const Lock lock(mutex_);
        if (doubled)
          arrive(from, to, [this, from, to, epoch, message] { deliver(from, to, epoch, message); });
        arrive(from, to, [this, from, to, epoch, message = std::move(message)] {
          link(from, to).queued_bytes -= message.bytes();
          deliver(from, to, epoch, message);
        });
      });
}

void SimNetwork::deliver(uint32_t from, uint32_t to, uint64_t epoch, const Message& message) {
  const Session& between = session(from, to);
  if (between.epoch != epoch || !between.up[to < from ? 0 : 1]) return;
  // Nobody is bound there: the sender hears nothing of that, as between processes.
  [[maybe_unused]] const Status delivered =
      nodes_[to].transport->endpoints_.deliver(message.endpoint, message.words);
}

void SimNetwork::arrive(uint32_t from, uint32_t to, EventQueue::Action action) {
  Link& in = link(from, to);
  if (action != nullptr) {
    if (in.held.empty() && in.blocks == 0 && !nodes_[to].frozen) return action();
    in.held.push_back(std::move(action));
  }
  if (in.held.empty() || in.blocks > 0 || nodes_[to].frozen) return;
  events_.after(in.how.latency, [this, from, to] {
    const Lock lock(mutex_);
    Link& open = link(from, to);
    while (!open.held.empty() && open.blocks == 0 && !nodes_[to].frozen) {
      const EventQueue::Action next = std::move(open.held.front());
      open.held.pop_front();
      next();
    }
  });
}

// --- Sessions

void SimNetwork::want_session(uint32_t from, uint32_t to) {
  Session& between = session(from, to);
  if (between.joining) return;
  between.joining = true;
  between.join_deadline = events_.now() + limits::kConnectDeadline;
  try_join(from, to, ++between.joins, limits::kConnectBackoffMin);
}

void SimNetwork::try_join(uint32_t from, uint32_t to, uint64_t attempt, Duration backoff) {
  const Duration trips = 2 * link(from, to).how.latency + link(to, from).how.latency;
  events_.after(trips, [this, from, to, attempt, backoff] {
    const Lock lock(mutex_);
    Session& between = session(from, to);
    if (!between.joining || between.joins != attempt) return;
    const auto runs = [this](uint32_t node) {
      return nodes_[node].transport != nullptr && !nodes_[node].frozen;
    };
    const bool open = link(from, to).blocks == 0 && link(to, from).blocks == 0;
    if (open && runs(from) && runs(to)) return join(from, to);
    if (events_.now() + backoff < between.join_deadline) {
      events_.after(backoff, [this, from, to, attempt, backoff] {
        const Lock inner(mutex_);
        try_join(from, to, attempt, std::min<Duration>(2 * backoff, limits::kConnectBackoffMax));
      });
      return;
    }
    between.joining = false;
    for (const auto& [self, peer] : {Pair(from, to), Pair(to, from)}) {
      Link& out = link(self, peer);
      if (out.waiting.empty() && out.waiting_moves.empty()) continue;
      for (const Message& message : out.waiting) out.queued_bytes -= message.bytes();
      out.waiting.clear();
      const Status why(StatusCode::kUnavailable,
                       "node '" + nodes_[peer].name + "' cannot be reached");
      end_outgoing(self, peer, why);
      ++stats_.peers_lost;
      SimTransport* transport = nodes_[self].transport;
      if (transport != nullptr && transport->observer_ != nullptr) {
        transport->observer_->on_peer_lost(nodes_[peer].name, why);
      }
    }
  });
}

void SimNetwork::join(uint32_t from, uint32_t to) {
  lose(from, to, "it was joined anew");
  lose(to, from, "it was joined anew");
  Session& between = session(from, to);
  between.joining = false;
  ++between.epoch;
  between.up[0] = between.up[1] = true;
  const auto [low, high] = std::minmax(from, to);
  between.incarnations[0] = nodes_[low].incarnation;
  between.incarnations[1] = nodes_[high].incarnation;
  for (const auto& [self, peer] : {Pair(from, to), Pair(to, from)}) {
    PeerObserver* observer = nodes_[self].transport->observer_;
    if (observer != nullptr) observer->on_peer_joined(nodes_[peer].name, nodes_[peer].incarnation);
  }
  flush(from, to);
  flush(to, from);
}

void SimNetwork::flush(uint32_t from, uint32_t to) {
  Link& out = link(from, to);
  while (!out.waiting.empty()) {
    Message message = std::move(out.waiting.front());
    out.waiting.pop_front();
    transmit(from, to, std::move(message));
  }
  const std::deque<uint64_t> waiting = std::exchange(out.waiting_moves, {});
  for (const uint64_t id : waiting) start_move(id);
}

void SimNetwork::lose(uint32_t self, uint32_t peer, const std::string& why) {
  Session& between = session(self, peer);
  if (!side_of(between, self, peer)) return;
  side_of(between, self, peer) = false;
  ++stats_.peers_lost;
  const Status status(StatusCode::kUnavailable, "node '" + nodes_[peer].name + "' is lost: " + why);
  end_outgoing(self, peer, status);
  for (auto& [id, move] : moves_) {
    if (move.to == self && move.from == peer) drop_write(move);
  }
  // What was held on its way here finds nobody.
  std::deque<EventQueue::Action> held = std::exchange(link(peer, self).held, {});
  for (const EventQueue::Action& action : held) action();
  const uint64_t epoch = between.epoch;
  events_.after(latency_of(link(self, peer)), [this, self, peer, epoch] {
    const Lock lock(mutex_);
    arrive(self, peer, [this, self, peer, epoch] {
      if (session(self, peer).epoch == epoch) lose(peer, self, "it closed the connection");
    });
  });
  SimTransport* transport = nodes_[self].transport;
  if (transport != nullptr && transport->observer_ != nullptr) {
    transport->observer_->on_peer_lost(nodes_[peer].name, status);
  }
}

}  // namespace troupe
