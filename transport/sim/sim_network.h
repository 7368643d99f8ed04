#pragma once
// A simulated network between nodes: latency, bandwidth, queues, and everything that can go wrong.
//
// Between two nodes there is a *session*, as between processes: the first message opens it, which
// takes one and a half round trips; either side may lose it, and then what is under way is gone and
// both hear of it before the next session begins. Each direction of a pair is a *link* with two
// lanes: messages keep their order, parts queue behind one another, and messages overtake parts.
//
// Keepalives are not sent one by one: a side loses a peer when its link has been silent for as long
// as keepalives would need to notice, which is the same to both and costs no events.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/sim/event_queue.h"
#include "transport/sim/seeded_rng.h"
#include "troupe/transport.h"

namespace troupe {

class SimTransport;

struct SimLink {
  Duration latency = std::chrono::microseconds(50);
  Duration jitter_max{0};           // added to each message's and part's latency, uniform
  double bytes_per_second = 3.0e9;  // of each lane
  bool operator==(const SimLink&) const = default;
};

struct SimNetworkOptions {
  SimLink link;  // of every pair, until set_link()
  // A part takes the time of so many times its bytes: KV in simulated memory is smaller than what
  // it stands for.
  double part_bytes_factor = 1.0;
  // Probabilities, of each message or part.
  double message_doubled = 0.0;  // delivered twice in a row
  double part_doubled = 0.0;     // written once more, later
  double part_damaged = 0.0;     // one byte flips on the way
  // A planted bug: each part is written once more, later, even when its landing has been retracted.
  bool ignores_fences = false;
};

struct SimNetworkStats {
  uint64_t messages = 0, message_bytes = 0;
  uint64_t parts = 0, part_bytes = 0;  // landed, once each
  uint64_t parts_refused = 0, parts_damaged = 0, parts_doubled = 0;
  uint64_t peers_lost = 0;
  // Parts whose bytes changed between move() and their arrival: the sender broke the contract.
  uint64_t parts_unstable = 0;
  Duration part_seconds{0};  // from move() to arrival, summed over the parts that landed
};

// Thread-safe: a test may send from another thread than the one that runs the events.
class SimNetwork final {
 public:
  // Both must outlive the network. The network must outlive its transports.
  SimNetwork(EventQueue& events, SeededRng& rng, SimNetworkOptions options);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  // --- Faults. Nodes need not exist yet.

  // One direction.
  void set_link(const std::string& from, const std::string& to, const SimLink& link);
  // Nothing gets through until unblock(): it waits, and arrives then unless the session was lost
  // meanwhile. Calls count.
  void block(const std::string& from, const std::string& to);
  void unblock(const std::string& from, const std::string& to);
  // The process does not run: it is silent, and nothing is delivered to it.
  void freeze(const std::string& node);
  void thaw(const std::string& node);
  // Whoever ends under this name next does so without a word, as a machine without power.
  void hide_death(const std::string& node);

  [[nodiscard]] const SimNetworkStats& stats() const { return stats_; }
  // Parts between move() and their end, and bytes of messages on their way.
  [[nodiscard]] size_t moves_under_way() const { return moves_.size(); }
  // The most bytes of messages that were ever under way from one node to another.
  [[nodiscard]] size_t queue_bytes_most() const { return queue_bytes_most_; }

 private:
  friend class SimTransport;
  using Lock = std::lock_guard<std::recursive_mutex>;

  struct Node {
    std::string name;
    SimTransport* transport = nullptr;  // null: nobody runs there
    uint64_t incarnation = 0;
    bool frozen = false, hides_death = false;
  };
  struct Message {
    std::string endpoint;
    MessageWords words;
    [[nodiscard]] size_t bytes() const { return words.size() * sizeof(uint64_t); }
  };
  struct Move {
    uint32_t from = 0, to = 0;
    uint64_t epoch = 0;
    BulkTicket ticket;
    BulkPart part;
    MoveDone done;  // null once called
    TrafficClass traffic = TrafficClass::kBulk;
    uint64_t bytes = 0;
    uint64_t checksum = 0;
    TimePoint moved{};
    bool started = false;  // on the link
    // While the receiver writes it.
    std::optional<std::vector<std::span<std::byte>>> writing;
    // Of one that is delivered again: its own bytes.
    std::vector<std::byte> copy;
  };
  struct Link {
    SimLink how;
    uint32_t blocks = 0;
    bool silent = false;
    uint64_t silences = 0;  // numbers the changes of `silent`
    TimePoint last_arrival{}, messages_free{}, parts_free{}, background_free{};
    std::deque<EventQueue::Action> held;  // arrived while nothing gets through
    std::deque<Message> waiting;          // for a session
    std::deque<uint64_t> waiting_moves;
    size_t queued_bytes = 0, moves = 0;
    uint64_t messages_sent = 0, bytes_sent = 0, parts_refused = 0;
  };
  using Pair = std::pair<uint32_t, uint32_t>;
  struct Session {
    uint64_t epoch = 0;
    bool up[2] = {false, false};  // as the smaller and the larger index see it
    bool joining = false;
    uint64_t joins = 0;  // numbers the attempts
    TimePoint join_deadline{};
    uint64_t incarnations[2] = {0, 0};
  };

  uint32_t index_of(std::string_view name);
  Link& link(uint32_t from, uint32_t to);
  Session& session(uint32_t a, uint32_t b) { return sessions_[std::minmax(a, b)]; }
  static bool& side_of(Session& session, uint32_t self, uint32_t other) {
    return session.up[self < other ? 0 : 1];
  }
  [[nodiscard]] Duration latency_of(const Link& link);

  void attach(SimTransport& transport);
  void detach(SimTransport& transport);
  [[nodiscard]] Status send(SimTransport& from, std::string_view address, MessageWords words);
  void move(SimTransport& from, std::string_view node, const BulkTicket& ticket,
            TrafficClass traffic, BulkPart part, MoveDone done);

  void transmit(uint32_t from, uint32_t to, Message message);
  void deliver(uint32_t from, uint32_t to, uint64_t epoch, const Message& message);
  // Runs it now, or when the link lets something through again.
  void arrive(uint32_t from, uint32_t to, EventQueue::Action action);
  void start_move(uint64_t id);
  void begin_write(uint64_t id);
  void finish_write(uint64_t id);
  [[nodiscard]] Status write(Move& move);
  void write_again(const Move& move);
  void write_unfenced(const Move& move, const std::vector<std::span<std::byte>>& ranges);
  void acknowledge(uint64_t id, Status status);
  void end_move(uint64_t id, Status status);
  void drop_write(Move& move);

  void want_session(uint32_t from, uint32_t to);
  void try_join(uint32_t from, uint32_t to, uint64_t attempt, Duration backoff);
  void join(uint32_t from, uint32_t to);
  void flush(uint32_t from, uint32_t to);
  // `self` gives up its session with `peer`, tells its observer, and the peer if it can be reached.
  void lose(uint32_t self, uint32_t peer, const std::string& why);
  void end_outgoing(uint32_t self, uint32_t peer, const Status& why);
  void update_silence(uint32_t from, uint32_t to);
  void update_silence_of(uint32_t node);

  EventQueue& events_;
  SeededRng& rng_;
  const SimNetworkOptions options_;
  mutable std::recursive_mutex mutex_;
  std::vector<Node> nodes_;
  std::map<std::string, uint32_t, std::less<>> indices_;
  std::map<Pair, Link> links_;        // from, to
  std::map<Pair, Session> sessions_;  // smaller index, larger index
  std::map<uint64_t, Move> moves_;
  uint64_t next_move_ = 1;
  SimNetworkStats stats_;
  size_t queue_bytes_most_ = 0;
};

}  // namespace troupe
