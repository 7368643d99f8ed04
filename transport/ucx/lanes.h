#pragma once
// The two lanes to one joined peer: a UCX endpoint, what waits for it, and what is under way. All
// on the progress thread.

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/clock.h"
#include "transport/local/endpoint_table.h"
#include "transport/local/landing_table.h"
#include "transport/ucx/bulk_receiver.h"
#include "transport/ucx/bulk_sender.h"
#include "transport/ucx/ucx_worker.h"

namespace troupe::ucx {

struct OutMessage {
  std::string endpoint;
  MessageWords words;
  // What it counts in the account: its bytes, and something for its being there at all.
  [[nodiscard]] size_t charge() const {
    return words.size() * sizeof(uint64_t) + endpoint.size() + sizeof(OutMessage);
  }
};

// How much of a peer's is queued or under way, counted against the limits of the port. Raised by
// whoever hands something over, lowered when it has ended.
struct Account {
  std::atomic<size_t> message_bytes{0};
  std::atomic<size_t> moves{0};
};

struct LaneCounters {
  uint64_t messages_sent = 0, messages_received = 0;
  uint64_t bytes_sent = 0, bytes_received = 0;
  uint64_t parts_refused = 0;
  LaneCounters& operator+=(const LaneCounters& other);
};

// What it needs of the node; all outlive the lanes.
struct LaneEnvironment {
  UcxWorker& worker;
  EndpointTable& endpoints;
  LandingTable& landings;
  const std::function<uint64_t(uint64_t)>& checksum_fault;
  bool rendezvous;
};

class Lanes final {
 public:
  // kUnavailable: UCX finds no way to `lane_address`.
  [[nodiscard]] static Result<std::unique_ptr<Lanes>> open(const LaneEnvironment& environment,
                                                           const std::string& lane_address,
                                                           uint64_t token_out, Account& account);
  // Only when is_closed().
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  void queue(OutMessage message) { messages_.push_back(std::move(message)); }
  void queue(OutMove move) { sender_.queue(std::move(move)); }
  // Hands to UCX what the limits allow. Whether that was anything.
  bool flush();

  // One active message of the peer, its token already taken off `head`.
  ucs_status_t receive(LaneKind kind, std::string_view head, void* data, size_t bytes,
                       const ucp_am_recv_param_t& how);

  // Not ok: the lanes carry nothing any more; close them.
  [[nodiscard]] const Status& broken() const { return broken_; }
  // Ends everything. What UCX has under way ends while it makes progress: it is left to find out
  // for itself that the peer is gone, until `close_at` where nothing is under way, until `force_at`
  // where something is. 1.13 may crash when an endpoint is closed by force before that.
  void close(const Status& why, TimePoint close_at, TimePoint force_at);
  // Call it until it is true, between calls of progress().
  [[nodiscard]] bool is_closed(TimePoint now);
  // UCX has nothing of ours.
  [[nodiscard]] bool is_nothing_under_way() const;
  // Nothing is queued or under way.
  [[nodiscard]] bool is_idle() const;
  [[nodiscard]] LaneCounters counters() const;
  // What carries it, for people.
  [[nodiscard]] std::string describe() const;

 private:
  struct MessageOp;
  struct Inbound;
  Lanes(const LaneEnvironment& environment, uint64_t token_out, Account& account);
  [[nodiscard]] bool may_send_message() const;
  bool flush_messages();
  bool flush_results();
  void post(std::unique_ptr<MessageOp> op, LaneKind kind);
  void finish(MessageOp& op, ucs_status_t status);
  ucs_status_t receive_message(std::string_view head, void* data, size_t bytes,
                               const ucp_am_recv_param_t& how);
  ucs_status_t receive_results(std::string_view head);
  void finish(Inbound& inbound, ucs_status_t status);
  void deliver_what_is_next();
  void break_off(Status why);
  void force_close();

  LaneEnvironment environment_;
  const uint64_t token_out_;
  Account& account_;
  ucp_ep_h endpoint_ = nullptr;
  bool has_failed_ = false;  // UCX says so
  bool close_asked_ = false;
  TimePoint close_at_{}, force_at_{};
  void* closing_ = nullptr;  // UCX's request
  Status broken_;
  LaneCounters counters_;

  std::deque<OutMessage> messages_;
  uint64_t next_sequence_out_ = 0;
  uint64_t message_bytes_out_ = 0;
  // What UCX has of messages, in order, and message_bytes_out_ after each.
  std::map<uint64_t, uint64_t> incomplete_;
  size_t results_in_flight_ = 0;

  // What has arrived, whole or not, and was not delivered yet, by its place in the order.
  std::unordered_map<uint64_t, std::unique_ptr<Inbound>> inbound_;
  uint64_t next_sequence_in_ = 0;
  size_t inbound_bytes_ = 0;
  size_t receives_in_flight_ = 0;

  BulkSender sender_;
  BulkReceiver receiver_;
};

}  // namespace troupe::ucx
