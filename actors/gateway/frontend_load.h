#pragma once
// What the front ends of one process share: the limits, the counts that are held against them, and
// the numbering of requests.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/gateway/frontend_limits.h"
#include "base/metrics/frontend_metrics.h"
#include "troupe/status.h"

namespace troupe {

// One thing that counts against a limit, while it lives. Movable; not to outlive its FrontendLoad.
class LoadTicket final {
 public:
  explicit LoadTicket(uint32_t& count) : count_(&count) { ++count; }
  ~LoadTicket() {
    if (count_ != nullptr) --*count_;
  }
  LoadTicket(LoadTicket&& other) noexcept : count_(other.count_) { other.count_ = nullptr; }
  LoadTicket& operator=(LoadTicket&&) = delete;

 private:
  uint32_t* count_;
};

// One per process, outlives its front ends. Loop thread only.
class FrontendLoad final {
 public:
  // `incarnation` differs for each start of the process: response ids, and the seeds of requests
  // that name none, are derived from it.
  FrontendLoad(FrontendLimits limits, uint64_t incarnation);
  FrontendLoad(const FrontendLoad&) = delete;
  FrontendLoad& operator=(const FrontendLoad&) = delete;

  [[nodiscard]] const FrontendLimits& limits() const { return limits_; }
  [[nodiscard]] uint32_t connections() const { return connections_; }
  [[nodiscard]] uint32_t generations() const { return generations_; }

  // None: there are as many as there may be.
  [[nodiscard]] std::optional<LoadTicket> open_connection();
  // kResourceExhausted: as many requests are generated as there may be.
  [[nodiscard]] Result<LoadTicket> begin_generation();

  [[nodiscard]] FrontendMetrics& metrics() { return metrics_; }
  // Prometheus text format, with the counts as of now.
  [[nodiscard]] std::string serialize_metrics();

  // Numbers requests from 1.
  [[nodiscard]] uint64_t next_request() { return ++requests_; }
  // "<prefix><24 hexadecimal digits or more>": unique in the process by the number, and among
  // processes by the incarnation.
  [[nodiscard]] std::string response_id(std::string_view prefix, uint64_t request) const;
  [[nodiscard]] uint64_t default_seed(uint64_t request) const;

 private:
  const FrontendLimits limits_;
  FrontendMetrics metrics_;
  const uint64_t incarnation_;
  uint64_t requests_ = 0;
  uint32_t connections_ = 0;
  uint32_t generations_ = 0;
};

// Whether the name that a client gave its request can stand in logs and headers.
[[nodiscard]] bool is_usable_request_id(std::string_view id);

}  // namespace troupe
