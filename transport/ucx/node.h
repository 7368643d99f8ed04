#pragma once
// One node: its progress thread, its peers, and what other threads hand over to it.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "transport/session/keepalive.h"
#include "transport/session/secret.h"
#include "transport/ucx/lanes.h"
#include "transport/ucx/link.h"
#include "transport/ucx/ucx_transport.h"
#include "transport/ucx/ucx_worker.h"

namespace troupe::ucx {

class Node final : private LaneReceiver {
 public:
  // `options` are checked except for what only opening can tell. All arguments must outlive it.
  [[nodiscard]] static Result<std::unique_ptr<Node>> start(const UcxOptions& options, Secret secret,
                                                           const Clock& clock,
                                                           EndpointTable& endpoints,
                                                           LandingTable& landings);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Ends everything under way and the thread. Nothing may be handed over any more.
  void stop();

  // --- Any thread
  [[nodiscard]] const std::string& name() const { return identity_.node; }
  [[nodiscard]] UcxWorker& worker() { return *worker_; }
  [[nodiscard]] Status send(std::string_view node, OutMessage message);
  void move(std::string_view node, OutMove move);
  void set_peer_observer(PeerObserver* observer);
  [[nodiscard]] std::vector<PeerState> peers() const;

 private:
  // What other threads and the progress thread share about a peer; guarded by mutex_, except for
  // the account.
  struct Mailbox {
    std::vector<OutMessage> messages;
    std::vector<OutMove> moves;
    Account account;
    bool is_listed = false;  // in handed_over_
    Status refused;          // not ok until refused_until: sends fail at once
    TimePoint refused_until{};
    PeerState state;
  };

  // Progress thread only.
  struct Peer {
    std::string name;
    Mailbox* mailbox = nullptr;
    uint64_t incarnation_max = 0;
    // Not joined: what waits for it, and the try under way.
    std::vector<OutMessage> messages;
    std::vector<OutMove> moves;
    bool is_wanted = false;
    TimePoint connect_deadline{}, dial_at{};
    Duration backoff{0};
    Status last_failure;
    std::unique_ptr<Link> dialing;
    // Joined.
    std::unique_ptr<Link> session;
    std::unique_ptr<Lanes> lanes;
    bool is_confirmed = false;  // the peer knows that it has joined, and so takes what is sent
    uint64_t token_in = 0;
    uint64_t incarnation = 0;
    std::optional<Keepalive> keepalive;
    std::string transport;
    // Lanes to its former lives that have not ended yet.
    std::vector<std::unique_ptr<Lanes>> retired;
    LaneCounters counted;  // of its former lives
    TimePoint used{};      // when it last had anything
  };

  Node(const UcxOptions& options, Secret secret, const Clock& clock, EndpointTable& endpoints,
       LandingTable& landings);

  // node.cc: the thread, and what is handed over to it.
  void wake();
  [[nodiscard]] Result<Mailbox*> mailbox_of(std::string_view node);
  void list(std::string_view node, Mailbox& mailbox);
  void run();
  bool turn();
  void sleep();
  void shut_down();
  void take_handed_over();
  bool flush_lanes();
  void tick();
  void publish(Peer& peer);
  ucs_status_t on_active_message(LaneKind kind, std::string_view head, void* data, size_t bytes,
                                 const ucp_am_recv_param_t& how) override;

  // node_peers.cc: joining and losing.
  [[nodiscard]] Peer& peer_of(const std::string& name);
  void poll_links(Duration timeout);
  void accept_links();
  void on_link_of_peer(Peer& peer, int fd, short events);
  void on_unproved(size_t index);
  void on_session_frames(Peer& peer, const std::vector<Frame>& frames);
  [[nodiscard]] bool is_joined(const std::string& name) const;
  void decide(std::unique_ptr<Link> link);
  void want(Peer& peer);
  void dial(Peer& peer);
  void on_dial_failed(Peer& peer, const Status& why);
  void on_dialing_handshake(Peer& peer, const Status& alive);
  void join(Peer& peer, std::unique_ptr<Link> link);
  void confirm(Peer& peer);
  void lose(Peer& peer, const Status& why);
  void tick_peer(Peer& peer, TimePoint now);
  void end_link(std::unique_ptr<Link> link);
  [[nodiscard]] Nonce nonce();
  void give_up_on_sockets(const std::string& name);
  void tell_lost(const std::string& name, const Status& why);

  const UcxOptions& options_;
  const Secret secret_;
  const Clock& clock_;
  EndpointTable& endpoints_;
  LandingTable& landings_;
  NodeIdentity identity_;
  Socket listener_, event_;
  std::unique_ptr<UcxWorker> worker_;

  mutable std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Mailbox>, std::less<>> mailboxes_;
  std::vector<std::string> handed_over_;
  std::atomic<bool> is_awake_{false}, is_stopping_{false};

  std::mutex observer_mutex_;  // held while the observer runs
  PeerObserver* observer_ = nullptr;

  // Progress thread only.
  std::map<std::string, Peer> peers_;
  std::vector<std::unique_ptr<Link>> unproved_;  // others opened them, or they are ending
  std::unordered_map<uint64_t, Lanes*> lanes_by_token_;
  TimePoint ticked_{}, polled_{}, warned_{};
  uint64_t unknown_tokens_ = 0;

  std::thread thread_;
};

}  // namespace troupe::ucx
