#pragma once
// The receiving half of the bulk lane from one peer: puts chunks into landings, verifies them, and
// collects the results that go back. All on the progress thread.

#include <ucp/api/ucp.h>

#include <string_view>
#include <unordered_map>
#include <vector>

#include "transport/local/landing_table.h"
#include "transport/ucx/lane_format.h"

namespace troupe::ucx {

class BulkReceiver final {
 public:
  BulkReceiver(ucp_worker_h worker, LandingTable& landings)
      : worker_(worker), landings_(landings) {}
  // Asserts that nothing is being received.
  ~BulkReceiver();
  BulkReceiver(const BulkReceiver&) = delete;
  BulkReceiver& operator=(const BulkReceiver&) = delete;

  // One active message; `head` is what follows the token. Sets `status` where the peer breaks the
  // protocol.
  ucs_status_t receive(std::string_view head, void* data, size_t bytes,
                       const ucp_am_recv_param_t& how, Status& status);

  [[nodiscard]] std::vector<PartResult>& results() { return results_; }
  [[nodiscard]] bool has_results() const { return !results_.empty(); }
  [[nodiscard]] bool is_idle() const { return in_flight_ == 0; }
  [[nodiscard]] uint64_t parts_refused() const { return parts_refused_; }
  [[nodiscard]] uint64_t bytes_received() const { return bytes_received_; }

 private:
  // A part of which some chunks have come.
  struct Arriving {
    uint64_t received = 0;
    uint64_t given_up_after = UINT64_MAX;  // bytes, where the sender has
    bool failed = false;                   // told to the sender; the rest is dropped
  };
  struct Op;

  [[nodiscard]] static Status check(const ChunkHead& chunk);
  [[nodiscard]] bool is_failed(const ChunkHead& chunk) const;
  [[nodiscard]] Result<ByteRanges> begin(const ChunkHead& chunk);
  void copy_in(const ChunkHead& chunk, std::span<const std::byte> bytes);
  ucs_status_t receive_rendezvous(const ChunkHead& chunk, void* data, size_t bytes, Status& status);
  void finish(Op& op, ucs_status_t status);
  void end(const ChunkHead& chunk, bool verified);
  void refuse(const ChunkHead& chunk, ResultCode code);
  bool count(const ChunkHead& chunk);
  void on_given_up(const ChunkHead& chunk);

  ucp_worker_h worker_;
  LandingTable& landings_;
  std::unordered_map<uint64_t, Arriving> arriving_;
  std::vector<PartResult> results_;
  size_t in_flight_ = 0;
  uint64_t parts_refused_ = 0, bytes_received_ = 0;
};

}  // namespace troupe::ucx
