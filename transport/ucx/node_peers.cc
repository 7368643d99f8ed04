// Who is joined: connections, handshakes, keepalives, losses. All on the progress thread.

#include <glog/logging.h>
#include <poll.h>

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "transport/session/limits.h"
#include "transport/ucx/limits.h"
#include "transport/ucx/node.h"
#include "transport/ucx/ucx_sockets.h"

namespace troupe::ucx {

Node::Peer& Node::peer_of(const std::string& name) {
  const auto found = peers_.find(name);
  if (found != peers_.end()) return found->second;
  Peer& peer = peers_[name];
  peer.name = name;
  peer.used = clock_.now();
  const std::lock_guard lock(mutex_);
  peer.mailbox = mailboxes_.at(name).get();
  return peer;
}

Nonce Node::nonce() {
  Nonce out;
  for (uint64_t& word : out) word = options_.random();
  return out;
}

// Also waits for UCX and for what other threads hand over.
void Node::poll_links(Duration timeout) {
  std::vector<pollfd> fds{
      {listener_.fd(), POLLIN, 0}, {event_.fd(), POLLIN, 0}, {worker_->event_fd(), POLLIN, 0}};
  const auto add = [&fds](const Link& link) {
    fds.push_back(
        {link.fd(), static_cast<short>(link.wants_to_write() ? POLLIN | POLLOUT : POLLIN), 0});
  };
  std::vector<Peer*> peers;
  for (auto& [name, peer] : peers_) {
    if (!peer.session && !peer.dialing) continue;
    peers.push_back(&peer);
    add(peer.session ? *peer.session : *peer.dialing);
  }
  for (const auto& link : unproved_) add(*link);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(timeout);
  const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(milliseconds.count()));
  polled_ = clock_.now();
  if (ready <= 0) return;
  const size_t first_unproved = 3 + peers.size();
  // From the end, because one that ends leaves the list.
  for (size_t i = fds.size(); i-- > first_unproved;) {
    if (fds[i].revents != 0) on_unproved(i - first_unproved);
  }
  for (size_t i = 0; i < peers.size(); ++i) {
    if (fds[3 + i].revents != 0) on_link_of_peer(*peers[i], fds[3 + i].fd, fds[3 + i].revents);
  }
  if (fds[0].revents != 0) accept_links();
}

void Node::accept_links() {
  const TimePoint now = clock_.now();
  while (true) {
    std::string from;
    Socket socket = accept_from(listener_, from);
    if (socket.fd() < 0) return;
    if (unproved_.size() >= limits::kUnprovedConnectionsMax) {
      LOG(WARNING) << "connection from " << from << ": too many that have not joined; closed";
      continue;
    }
    auto link = std::make_unique<Link>(std::move(socket), from, now + limits::kHandshakeDeadline);
    link->handshake.emplace(Handshake::Role::kAcceptor, secret_, identity_, nonce());
    unproved_.push_back(std::move(link));
  }
}

// The link stays open until the other side has read the last words.
void Node::end_link(std::unique_ptr<Link> link) {
  link->end_after_reply();
  link->set_deadline(clock_.now() + limits::kKeepaliveTimeout);
  unproved_.push_back(std::move(link));
}

void Node::on_unproved(size_t index) {
  Link& link = *unproved_[index];
  const auto remove = [&] { unproved_.erase(unproved_.begin() + static_cast<ptrdiff_t>(index)); };
  std::vector<Frame> frames;
  const Status alive = link.read(frames);
  if (link.is_ending()) {
    if (!alive.ok()) remove();
    return;
  }
  std::string reply;
  for (const Frame& frame : frames) {
    if (link.handshake->state() == Handshake::State::kRunning) {
      static_cast<void>(link.handshake->on_frame(frame, reply));
    }
  }
  if (!reply.empty()) static_cast<void>(link.send(reply));
  switch (link.handshake->state()) {
    case Handshake::State::kProved: {
      std::unique_ptr<Link> owned = std::move(unproved_[index]);
      remove();
      return decide(std::move(owned));
    }
    case Handshake::State::kFailed: {
      const Status& why = link.handshake->failure();
      LOG(WARNING) << "connection from " << link.name() << ": " << why.message() << "; refused";
      const std::string partner = link.handshake->partner().node;
      // Who differs in the record has proved that it is the node that it says it is.
      const bool is_proved = !why.param().empty();
      if (is_proved && !is_joined(partner)) tell_lost(partner, why);
      std::unique_ptr<Link> owned = std::move(unproved_[index]);
      remove();
      return end_link(std::move(owned));
    }
    default:
      break;
  }
  if (alive.ok()) {
    static_cast<void>(link.flush());
    return;
  }
  LOG(WARNING) << "connection from " << link.name() << ": " << alive.message()
               << " before it joined; closed";
  remove();
}

bool Node::is_joined(const std::string& name) const {
  const auto found = peers_.find(name);
  return found != peers_.end() && found->second.lanes != nullptr;
}

// Whether a partner that has proved itself joins by this connection. Of two nodes that connect to
// each other at once, the connection of the one with the smaller name stays.
void Node::decide(std::unique_ptr<Link> link) {
  const NodeIdentity& partner = link->handshake->partner();
  const auto refuse = [&](const Status& why) {
    LOG(WARNING) << "node " << partner.node << " (" << link->name() << "): " << why.message()
                 << "; refused";
    static_cast<void>(link->send(encode_frame(link->handshake->refuse(why))));
    end_link(std::move(link));
  };
  if (partner.node == name()) {
    return refuse(invalid_argument("it calls itself by the name of the node that it reached"));
  }
  {
    const std::lock_guard lock(mutex_);
    if (const auto mailbox = mailbox_of(partner.node); !mailbox.ok()) {
      return refuse(mailbox.status());
    }
  }
  Peer& peer = peer_of(partner.node);
  if (partner.incarnation < peer.incarnation_max) {
    return refuse({StatusCode::kUnavailable, "incarnation " + std::to_string(partner.incarnation) +
                                                 " is older than the known " +
                                                 std::to_string(peer.incarnation_max)});
  }
  if (peer.lanes && partner.incarnation > peer.incarnation) {
    lose(peer, {StatusCode::kUnavailable, "it was started anew"});
  }
  if (peer.lanes || (peer.dialing && name() < peer.name)) {
    static_cast<void>(link->send(encode_frame(link->handshake->refuse_as_duplicate())));
    return end_link(std::move(link));
  }
  // Lanes first: the partner may send as soon as it is accepted.
  const std::string accept = encode_frame(link->handshake->accept());
  Link& accepted = *link;
  join(peer, std::move(link));
  if (!peer.lanes) return;
  if (Status status = accepted.send(accept); !status.ok()) lose(peer, status);
}

void Node::want(Peer& peer) {
  if (peer.is_wanted || peer.lanes) return;
  peer.is_wanted = true;
  peer.connect_deadline = clock_.now() + limits::kConnectDeadline;
  peer.backoff = limits::kConnectBackoffMin;
  peer.last_failure = ok_status();
  dial(peer);
}

void Node::dial(Peer& peer) {
  const auto to = parse_node(peer.name);
  TROUPE_ASSERT(to.ok(), peer.name);
  auto socket = connect_to(to.value());
  if (!socket.ok()) return on_dial_failed(peer, socket.status());
  peer.dialing =
      std::make_unique<Link>(std::move(socket).value(), peer.name, peer.connect_deadline);
  peer.dialing->set_connecting(true);
  peer.dialing->handshake.emplace(Handshake::Role::kConnector, secret_, identity_, nonce());
  static_cast<void>(peer.dialing->send(encode_frame(peer.dialing->handshake->hello())));
}

void Node::on_dial_failed(Peer& peer, const Status& why) {
  peer.dialing.reset();
  peer.last_failure = why;
  peer.dial_at = clock_.now() + peer.backoff;
  peer.backoff = std::min<Duration>(2 * peer.backoff, limits::kConnectBackoffMax);
}

void Node::on_link_of_peer(Peer& peer, int fd, short events) {
  Link* link = peer.session ? peer.session.get() : peer.dialing.get();
  // What was handled before in this round may have changed it.
  if (link == nullptr || link->fd() != fd) return;
  if (link->is_connecting()) {
    if (Status status = connect_status(link->socket()); !status.ok()) {
      return on_dial_failed(peer, status);
    }
    link->set_connecting(false);
  }
  Status alive = (events & POLLOUT) != 0 ? link->flush() : ok_status();
  std::vector<Frame> frames;
  if (alive.ok()) alive = link->read(frames);
  if (peer.session) {
    on_session_frames(peer, frames);
    if (!alive.ok() && peer.session) lose(peer, alive);
    return;
  }
  std::string reply;
  for (const Frame& frame : frames) {
    if (link->handshake->state() == Handshake::State::kRunning) {
      static_cast<void>(link->handshake->on_frame(frame, reply));
      const std::string& partner = link->handshake->partner().node;
      if (partner.empty() || partner == peer.name) continue;
      static_cast<void>(link->handshake->refuse(
          {StatusCode::kUnsupported, "the node at " + peer.name + " calls itself " + partner +
                                         "; reach it by that address"}));
      reply.clear();
    }
  }
  if (!reply.empty() && alive.ok()) alive = link->send(reply);
  on_dialing_handshake(peer, alive);
}

void Node::on_dialing_handshake(Peer& peer, const Status& alive) {
  const Handshake& handshake = *peer.dialing->handshake;
  switch (handshake.state()) {
    case Handshake::State::kJoined: {
      if (handshake.partner().incarnation < peer.incarnation_max) {
        return on_dial_failed(peer, {StatusCode::kUnavailable, "its incarnation is an older one"});
      }
      join(peer, std::move(peer.dialing));
      // Tells the acceptor that it may send.
      if (peer.lanes) tick_peer(peer, clock_.now());
      return;
    }
    case Handshake::State::kFailed: {
      const Status why = handshake.failure();
      if (handshake.is_duplicate() || why.code() == StatusCode::kUnavailable) {
        return on_dial_failed(peer, why);
      }
      end_link(std::move(peer.dialing));
      {
        const std::lock_guard lock(mutex_);
        peer.mailbox->refused = why;
        peer.mailbox->refused_until = clock_.now() + limits::kRefusedPause;
      }
      return lose(peer, why);
    }
    default:
      break;
  }
  if (!alive.ok()) on_dial_failed(peer, alive);
}

void Node::join(Peer& peer, std::unique_ptr<Link> link) {
  TROUPE_ASSERT(!peer.lanes && !peer.session, peer.name);
  const Handshake& handshake = *link->handshake;
  peer.dialing.reset();
  peer.is_wanted = true;  // so that lose() tells, should the lanes not open
  auto lanes = Lanes::open(
      {*worker_, endpoints_, landings_, options_.checksum_fault, options_.rendezvous},
      handshake.partner().lane_address, handshake.token_to_partner(), peer.mailbox->account);
  if (!lanes.ok()) return lose(peer, lanes.status());
  const TimePoint now = clock_.now();
  peer.is_wanted = false;
  peer.lanes = std::move(lanes).value();
  peer.token_in = handshake.token_from_partner();
  lanes_by_token_[peer.token_in] = peer.lanes.get();
  peer.incarnation = peer.incarnation_max = handshake.partner().incarnation;
  peer.keepalive.emplace(now, options_.peer_timeout);
  peer.transport = peer.lanes->describe();
  peer.is_confirmed = false;
  peer.session = std::move(link);
  {
    const std::lock_guard lock(mutex_);
    peer.mailbox->refused = ok_status();
  }
  publish(peer);
  LOG(INFO) << "node " << peer.name << " joined, by " << peer.transport;
  // Who dialled was accepted, and so knows that the peer has joined.
  if (peer.session->handshake->role() == Handshake::Role::kConnector) confirm(peer);
  const std::lock_guard lock(observer_mutex_);
  if (observer_ != nullptr) observer_->on_peer_joined(peer.name, peer.incarnation);
}

void Node::confirm(Peer& peer) {
  if (peer.is_confirmed) return;
  peer.is_confirmed = true;
  for (OutMessage& message : peer.messages) peer.lanes->queue(std::move(message));
  for (OutMove& move : peer.moves) peer.lanes->queue(std::move(move));
  peer.messages.clear();
  peer.moves.clear();
}

void Node::on_session_frames(Peer& peer, const std::vector<Frame>& frames) {
  const TimePoint now = clock_.now();
  for (const Frame& frame : frames) {
    if (!peer.session) return;  // lost meanwhile
    ByteReader in(frame.payload);
    peer.keepalive->on_heard(now);
    if (frame.kind == FrameKind::kPing) {
      const Pong pong = Keepalive::answer({static_cast<int64_t>(in.u64())}, now);
      ByteWriter out;
      out.u64(static_cast<uint64_t>(pong.pinger_ns));
      out.u64(static_cast<uint64_t>(pong.answerer_ns));
      const Status sent = peer.session->send(encode_frame({FrameKind::kPong, out.take()}));
      if (!sent.ok()) return lose(peer, sent);
    } else if (frame.kind == FrameKind::kPong) {
      Pong pong;
      pong.pinger_ns = static_cast<int64_t>(in.u64());
      pong.answerer_ns = static_cast<int64_t>(in.u64());
      if (in.complete()) peer.keepalive->on_pong(pong, now);
    }
    const bool is_keepalive = frame.kind == FrameKind::kPing || frame.kind == FrameKind::kPong;
    if (!is_keepalive || !in.complete()) {
      return lose(peer, {StatusCode::kDataLoss, "it sent a frame that has no place there"});
    }
    confirm(peer);
  }
}

void Node::tick_peer(Peer& peer, TimePoint now) {
  if (peer.lanes) {
    if (peer.keepalive->is_lost(now)) {
      const auto silence =
          std::chrono::duration_cast<std::chrono::milliseconds>(peer.keepalive->silence(now));
      return lose(peer, {StatusCode::kUnavailable,
                         "it was silent for " + std::to_string(silence.count()) + " ms"});
    }
    if (const auto ping = peer.keepalive->ping_due(now)) {
      ByteWriter out;
      out.u64(static_cast<uint64_t>(ping->sender_ns));
      const Status sent = peer.session->send(encode_frame({FrameKind::kPing, out.take()}));
      if (!sent.ok()) return lose(peer, sent);
    }
    return publish(peer);
  }
  if (!peer.is_wanted) return;
  if (now >= peer.connect_deadline) {
    const std::string why =
        peer.last_failure.ok() ? "it does not answer" : peer.last_failure.message();
    return lose(peer, {StatusCode::kUnavailable, "it cannot be reached: " + why});
  }
  if (!peer.dialing && now >= peer.dial_at) dial(peer);
}

void Node::lose(Peer& peer, const Status& why) {
  TROUPE_ASSERT(peer.lanes || peer.is_wanted, peer.name);
  const Status status{why.code(), "node " + peer.name + " is lost: " + why.message(), why.param()};
  if (!is_stopping_) LOG(WARNING) << status.message();
  peer.session.reset();
  peer.dialing.reset();
  peer.keepalive.reset();
  peer.is_wanted = peer.is_confirmed = false;
  std::unique_ptr<Lanes> lanes = std::move(peer.lanes);
  if (lanes) lanes_by_token_.erase(peer.token_in);
  const std::vector<OutMessage> messages = std::move(peer.messages);
  std::vector<OutMove> moves = std::move(peer.moves);
  peer.messages.clear();
  peer.moves.clear();
  const Status told{StatusCode::kUnavailable, status.message()};
  if (lanes) {
    const TimePoint now = clock_.now();
    if (is_stopping_) {
      lanes->close(told, now, now);
    } else {
      lanes->close(told, now + limits::kCloseGrace, now + limits::kCloseGraceBusy);
      if (!lanes->is_nothing_under_way()) give_up_on_sockets(peer.name);
    }
    peer.counted += lanes->counters();
    peer.retired.push_back(std::move(lanes));
  }
  publish(peer);
  for (const OutMessage& message : messages) {
    peer.mailbox->account.message_bytes.fetch_sub(message.charge());
  }
  for (OutMove& move : moves) {
    peer.mailbox->account.moves.fetch_sub(1);
    move.done(told);
  }
  if (!is_stopping_) tell_lost(peer.name, status);
}

void Node::give_up_on_sockets(const std::string& name) {
  const auto address = parse_node(name);
  if (!address.ok()) return;
  std::set<int> ours{listener_.fd()};
  for (const auto& [other, peer] : peers_) {
    if (peer.session) ours.insert(peer.session->fd());
    if (peer.dialing) ours.insert(peer.dialing->fd());
  }
  for (const auto& link : unproved_) ours.insert(link->fd());
  give_up_soon(address.value().ipv4, static_cast<int>(limits::kSocketPatience.count()),
               worker_->listening_ports(), ours);
}

void Node::tell_lost(const std::string& name, const Status& why) {
  const std::lock_guard lock(observer_mutex_);
  if (observer_ != nullptr) observer_->on_peer_lost(name, why);
}

}  // namespace troupe::ucx
