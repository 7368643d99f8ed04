#pragma once
// The sending half of the bulk lane to one peer: cuts parts into chunks, packs small ones together,
// and brings results back to whoever moved them. All on the progress thread.

#include <ucp/api/ucp.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "transport/ucx/lane_format.h"
#include "troupe/transport.h"

namespace troupe::ucx {

struct OutMove {
  BulkTicket ticket;
  TrafficClass traffic{};
  BulkPart part;
  MoveDone done;
};

class BulkSender final {
 public:
  struct Options {
    uint64_t token = 0;
    size_t head_bytes_max = 0;
    bool rendezvous = false;  // for what is contiguous and large
    const std::function<uint64_t(uint64_t)>& checksum_fault;
  };
  // Calls `on_ended` after each part's `done`.
  BulkSender(Options options, std::function<void()> on_ended);
  // Asserts that nothing is under way.
  ~BulkSender();
  BulkSender(const BulkSender&) = delete;
  BulkSender& operator=(const BulkSender&) = delete;

  void queue(OutMove move);
  // Hands to UCX what the limits allow. kUnavailable: UCX refuses.
  [[nodiscard]] Status flush(ucp_ep_h endpoint, bool& did_something);
  // kDataLoss: the peer speaks of what it cannot know.
  [[nodiscard]] Status on_result(const PartResult& result);
  // Every part not yet under way ends with `why` at once, the others when UCX lets go of them.
  void close(const Status& why);
  [[nodiscard]] bool is_idle() const { return moves_.empty() && in_flight_ == 0; }
  [[nodiscard]] bool has_queued() const;
  [[nodiscard]] uint64_t bytes_sent() const { return bytes_sent_; }

 private:
  struct Move;
  struct Op;

  [[nodiscard]] bool goes_by_rendezvous(size_t run_bytes) const;
  [[nodiscard]] Move* next_move();
  [[nodiscard]] std::unique_ptr<Op> next_op();
  bool add_chunk(Op& op, Move& move);
  [[nodiscard]] Status post(std::unique_ptr<Op> op, ucp_ep_h endpoint);
  void finish(Op& op, ucs_status_t status);
  void take_result(Move& move, Status status);
  void end_if_done(Move& move);

  const Options options_;
  const std::function<void()> on_ended_;
  size_t chunks_max_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Move>> moves_;
  uint64_t next_move_ = 0;
  std::array<std::deque<uint64_t>, 2> queued_;  // by class: somebody waits, nobody waits
  std::vector<ChunkHead> given_up_;             // to be told to the peer
  size_t in_flight_ = 0, rendezvous_in_flight_ = 0, background_in_flight_ = 0;
  uint64_t bytes_sent_ = 0;
  bool closed_ = false;
};

}  // namespace troupe::ucx
