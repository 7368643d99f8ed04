#include "transport/ucx/node.h"

#include <glog/logging.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/assert.h"
#include "base/limits.h"
#include "base/os/priority.h"
#include "transport/session/limits.h"
#include "transport/ucx/limits.h"

namespace troupe::ucx {
namespace {

// Sockets are looked at this often while UCX keeps the thread busy.
constexpr Duration kPollInterval = std::chrono::milliseconds(1);
constexpr Duration kWarnInterval = std::chrono::seconds(1);

Status closing() {
  return {StatusCode::kUnavailable, "this node is closing"};
}

}  // namespace

Result<std::unique_ptr<Node>> Node::start(const UcxOptions& options, Secret secret,
                                          const Clock& clock, EndpointTable& endpoints,
                                          LandingTable& landings) {
  std::unique_ptr<Node> node(new Node(options, std::move(secret), clock, endpoints, landings));
  uint16_t port = 0;
  TROUPE_ASSIGN_OR_RETURN(node->listener_, listen_at(options.host, options.port, port));
  TROUPE_ASSIGN_OR_RETURN(node->worker_, UcxWorker::create(options.host, options.net_devices,
                                                           options.rendezvous, *node));
  node->event_ = Socket(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  TROUPE_ASSERT(node->event_.fd() >= 0);
  node->identity_ = {options.host + ":" + std::to_string(port), options.incarnation, options.record,
                     node->worker_->address()};
  if (node->identity_.lane_address.size() > limits::kLaneAddressBytesMax) {
    return Status{StatusCode::kUnavailable,
                  "UCX uses too many network devices; name some in UCX_NET_DEVICES"};
  }
  node->thread_ = std::thread([self = node.get()] { self->run(); });
  return node;
}

Node::Node(const UcxOptions& options, Secret secret, const Clock& clock, EndpointTable& endpoints,
           LandingTable& landings)
    : options_(options),
      secret_(std::move(secret)),
      clock_(clock),
      endpoints_(endpoints),
      landings_(landings) {}

Node::~Node() {
  stop();
}

void Node::stop() {
  if (!thread_.joinable()) return;
  is_stopping_ = true;
  is_awake_ = false;
  wake();
  thread_.join();
}

void Node::wake() {
  if (is_awake_.exchange(true)) return;
  const uint64_t one = 1;
  const ssize_t written = ::write(event_.fd(), &one, sizeof one);
  TROUPE_ASSERT(written == sizeof one || errno == EAGAIN, errno);
}

Result<Node::Mailbox*> Node::mailbox_of(std::string_view node) {
  const auto found = mailboxes_.find(node);
  if (found != mailboxes_.end()) return found->second.get();
  TROUPE_RETURN_IF_ERROR(parse_node(node).status());
  if (mailboxes_.size() >= limits::kPeersMax) {
    return Status{StatusCode::kResourceExhausted,
                  "this node knows " + std::to_string(limits::kPeersMax) + " others already"};
  }
  auto fresh = std::make_unique<Mailbox>();
  fresh->state.node = std::string(node);
  return mailboxes_.emplace(std::string(node), std::move(fresh)).first->second.get();
}

void Node::list(std::string_view node, Mailbox& mailbox) {
  if (mailbox.is_listed) return;
  mailbox.is_listed = true;
  handed_over_.emplace_back(node);
}

Status Node::send(std::string_view node, OutMessage message) {
  {
    const std::lock_guard lock(mutex_);
    if (is_stopping_) return closing();
    TROUPE_ASSIGN_OR_RETURN(Mailbox* const mailbox, mailbox_of(node));
    if (!mailbox->refused.ok() && clock_.now() < mailbox->refused_until) return mailbox->refused;
    const size_t charge = message.charge();
    if (mailbox->account.message_bytes.fetch_add(charge) + charge > limits::kSendQueueBytesMax) {
      mailbox->account.message_bytes.fetch_sub(charge);
      return {StatusCode::kResourceExhausted,
              "the queue to node " + std::string(node) + " is full; send again later"};
    }
    mailbox->messages.push_back(std::move(message));
    list(node, *mailbox);
  }
  wake();
  return ok_status();
}

void Node::move(std::string_view node, OutMove move) {
  Status refused;
  {
    const std::lock_guard lock(mutex_);
    const Result<Mailbox*> mailbox = is_stopping_ ? closing() : mailbox_of(node);
    if (!mailbox.ok()) {
      refused = mailbox.status();
    } else if (!mailbox.value()->refused.ok() && clock_.now() < mailbox.value()->refused_until) {
      refused = mailbox.value()->refused;
    } else if (mailbox.value()->account.moves.fetch_add(1) >= limits::kMovesMax) {
      mailbox.value()->account.moves.fetch_sub(1);
      refused = {StatusCode::kResourceExhausted,
                 "too many parts are under way to node " + std::string(node)};
    } else {
      mailbox.value()->moves.push_back(std::move(move));
      list(node, *mailbox.value());
    }
  }
  if (!refused.ok()) return move.done(std::move(refused));
  wake();
}

void Node::set_peer_observer(PeerObserver* observer) {
  const std::lock_guard lock(observer_mutex_);
  observer_ = observer;
}

std::vector<PeerState> Node::peers() const {
  const std::lock_guard lock(mutex_);
  std::vector<PeerState> out;
  for (const auto& [node, mailbox] : mailboxes_) out.push_back(mailbox->state);
  return out;
}

void Node::run() {
  prefer_this_thread();  // its keepalives say that this node lives
  ticked_ = polled_ = clock_.now();
  while (!is_stopping_) {
    if (!turn()) sleep();
  }
  shut_down();
}

// Whether there was anything to do.
bool Node::turn() {
  bool did_something = false;
  for (int i = 0; i < limits::kProgressRoundsMax && worker_->progress(); ++i) did_something = true;
  if (is_awake_.exchange(false)) take_handed_over();
  did_something |= flush_lanes();
  const TimePoint now = clock_.now();
  if (now - polled_ >= kPollInterval) poll_links(Duration{0});
  if (now - ticked_ >= limits::kTick) tick();
  return did_something;
}

// Until something comes, or the next tick.
void Node::sleep() {
  if (!worker_->arm()) return;
  poll_links(limits::kTick);
}

void Node::take_handed_over() {
  uint64_t count = 0;
  static_cast<void>(!::read(event_.fd(), &count, sizeof count));
  struct Handed {
    std::string node;
    std::vector<OutMessage> messages;
    std::vector<OutMove> moves;
  };
  std::vector<Handed> all;
  {
    const std::lock_guard lock(mutex_);
    for (std::string& node : handed_over_) {
      Mailbox& mailbox = *mailboxes_.at(node);
      mailbox.is_listed = false;
      all.push_back({std::move(node), std::move(mailbox.messages), std::move(mailbox.moves)});
      mailbox.messages.clear();
      mailbox.moves.clear();
    }
    handed_over_.clear();
  }
  for (Handed& handed : all) {
    Peer& peer = peer_of(handed.node);
    const bool goes_out = peer.lanes && peer.is_confirmed;
    for (OutMessage& message : handed.messages) {
      if (goes_out)
        peer.lanes->queue(std::move(message));
      else
        peer.messages.push_back(std::move(message));
    }
    for (OutMove& move : handed.moves) {
      if (goes_out)
        peer.lanes->queue(std::move(move));
      else
        peer.moves.push_back(std::move(move));
    }
    if (!peer.lanes) want(peer);
  }
}

bool Node::flush_lanes() {
  bool did_something = false;
  for (auto& [name, peer] : peers_) {
    if (peer.lanes && peer.is_confirmed) did_something |= peer.lanes->flush();
    if (peer.lanes && !peer.lanes->broken().ok()) {
      lose(peer, peer.lanes->broken());
      did_something = true;
    }
    if (peer.retired.empty()) continue;
    const TimePoint now = clock_.now();
    std::erase_if(peer.retired, [now](const auto& lanes) { return lanes->is_closed(now); });
  }
  return did_something;
}

void Node::tick() {
  // All that has arrived is read before anybody is taken for silent.
  poll_links(Duration{0});
  const TimePoint now = ticked_ = clock_.now();
  for (auto& [name, peer] : peers_) tick_peer(peer, now);
  std::erase_if(unproved_, [now](const std::unique_ptr<Link>& link) {
    if (now < link->deadline()) return false;
    if (!link->is_ending()) {
      LOG(WARNING) << "connection from " << link->name() << ": it did not join in time; closed";
    }
    return true;
  });
  if (unknown_tokens_ > 0 && now - warned_ > kWarnInterval) {
    LOG(WARNING) << "dropped " << unknown_tokens_
                 << " messages that belong to no session: of a peer that is lost, or of a stranger";
    unknown_tokens_ = 0;
    warned_ = now;
  }
  // Forgets who was not heard of for long.
  const std::lock_guard lock(mutex_);
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    Mailbox& mailbox = *peer->second.mailbox;
    const bool is_in_use = peer->second.lanes || peer->second.is_wanted || mailbox.is_listed ||
                           !peer->second.retired.empty();
    if (is_in_use) peer->second.used = now;
    if (now - peer->second.used < limits::kPeerForgotten) {
      ++peer;
      continue;
    }
    mailboxes_.erase(peer->first);
    peer = peers_.erase(peer);
  }
}

void Node::publish(Peer& peer) {
  PeerState state;
  state.node = peer.name;
  state.connected = peer.lanes != nullptr;
  state.incarnation = peer.incarnation_max;
  LaneCounters counters = peer.counted;
  if (peer.lanes) counters += peer.lanes->counters();
  state.messages_sent = counters.messages_sent;
  state.messages_received = counters.messages_received;
  state.bytes_sent = counters.bytes_sent;
  state.bytes_received = counters.bytes_received;
  state.parts_refused = counters.parts_refused;
  if (peer.keepalive) {
    state.round_trip = peer.keepalive->round_trip();
    state.clock_offset = peer.keepalive->clock_offset();
    state.clock_uncertainty = peer.keepalive->clock_uncertainty();
  }
  state.transport = peer.transport;
  const std::lock_guard lock(mutex_);
  peer.mailbox->state = std::move(state);
}

ucs_status_t Node::on_active_message(LaneKind kind, std::string_view head, void* data, size_t bytes,
                                     const ucp_am_recv_param_t& how) {
  uint64_t token = 0;
  const auto found = take(head, token) ? lanes_by_token_.find(token) : lanes_by_token_.end();
  if (found == lanes_by_token_.end()) {
    ++unknown_tokens_;
    return UCS_OK;
  }
  return found->second->receive(kind, head, data, bytes, how);
}

void Node::shut_down() {
  take_handed_over();
  listener_ = Socket();
  unproved_.clear();
  for (auto& [name, peer] : peers_) {
    if (peer.lanes || peer.is_wanted) lose(peer, closing());
  }
  const TimePoint deadline = clock_.now() + limits::kCloseDeadline;
  bool is_open = true;
  while (is_open) {
    is_open = false;
    worker_->progress();
    for (auto& [name, peer] : peers_) {
      const TimePoint now = clock_.now();
      std::erase_if(peer.retired, [now](const auto& lanes) { return lanes->is_closed(now); });
      is_open |= !peer.retired.empty();
    }
    TROUPE_ASSERT(clock_.now() < deadline, "UCX does not let go of a closed endpoint");
  }
  const TimePoint flushed_by = clock_.now() + limits::kFlushDeadline;
  while (!worker_->is_flushed()) {
    worker_->progress();
    if (clock_.now() < flushed_by) continue;
    LOG(WARNING) << "UCX does not end what it has begun; its memory is given up";
    return worker_->abandon();
  }
}

}  // namespace troupe::ucx
