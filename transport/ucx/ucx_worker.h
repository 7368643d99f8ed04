#pragma once
// UCX's context and worker as one owned thing, with Troupe's settings. Used by one thread, except
// for map() and unmap().

#include <ucp/api/ucp.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe::ucx {

// The active messages of the two lanes.
enum class LaneKind : unsigned { kMessage = 1, kParts = 2, kResults = 3 };

class LaneReceiver {
 public:
  virtual ~LaneReceiver() = default;
  // The contract of ucp_am_recv_callback_t; `head` is not aligned.
  virtual ucs_status_t on_active_message(LaneKind kind, std::string_view head, void* data,
                                         size_t bytes, const ucp_am_recv_param_t& how) = 0;
};

class UcxWorker final {
 public:
  // Without `zero_copy`, what is sent is copied first: over TCP, UCX 1.13 completes a send from the
  // sender's own memory twice, and crashes, when the endpoint is closed while it is under way.
  // `receiver` must outlive the worker. kUnavailable: UCX cannot start here.
  [[nodiscard]] static Result<std::unique_ptr<UcxWorker>> create(std::string_view host,
                                                                 std::string_view net_devices,
                                                                 bool zero_copy,
                                                                 LaneReceiver& receiver);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  [[nodiscard]] ucp_worker_h handle() const { return worker_; }
  [[nodiscard]] int event_fd() const { return event_fd_; }
  // What others need to reach this worker.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] size_t head_bytes_max() const { return head_bytes_max_; }
  // At which UCX listens for TCP connections; empty where it uses none.
  [[nodiscard]] const std::set<uint16_t>& listening_ports() const { return listening_ports_; }
  // Whether something was done.
  bool progress() { return ucp_worker_progress(worker_) != 0; }
  // Whether event_fd() will tell of the next event; otherwise there is one already.
  [[nodiscard]] bool arm() { return ucp_worker_arm(worker_) == UCS_OK; }

  // UCX 1.13 aborts when it is destroyed while it still sets up an endpoint, be it one that only a
  // peer asked for. So call this, between calls of progress(), until it is true. If that takes too
  // long, abandon() gives UCX's objects up instead of destroying them.
  [[nodiscard]] bool is_flushed();
  void abandon() { is_abandoned_ = true; }

  // Thread-safe. kResourceExhausted: the system refuses.
  [[nodiscard]] Status map(std::span<std::byte> memory);
  void unmap(std::span<std::byte> memory);

 private:
  struct Slot {
    UcxWorker* worker;
    LaneKind kind;
  };
  explicit UcxWorker(LaneReceiver& receiver) : receiver_(receiver) {}
  [[nodiscard]] Status open(std::string_view host, std::string_view net_devices, bool zero_copy);
  [[nodiscard]] Status open_worker();
  static ucs_status_t on_active_message(void* slot, const void* head, size_t head_bytes, void* data,
                                        size_t bytes, const ucp_am_recv_param_t* how);

  LaneReceiver& receiver_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  bool is_flushing_ = false, is_abandoned_ = false;
  void* flush_ = nullptr;  // UCX's request
  std::string address_;
  size_t head_bytes_max_ = 0;
  std::set<uint16_t> listening_ports_;
  Slot slots_[3] = {
      {this, LaneKind::kMessage}, {this, LaneKind::kParts}, {this, LaneKind::kResults}};
  std::mutex maps_mutex_;
  std::map<std::byte*, ucp_mem_h> maps_;
};

// kUnavailable with UCX's words.
[[nodiscard]] Status status_of(ucs_status_t status, std::string_view doing);

}  // namespace troupe::ucx
