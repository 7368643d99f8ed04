#pragma once
// The numbers of a process's front ends, which belong to no model.

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <memory>
#include <string>

namespace troupe {

// Thread-safe, as prometheus-cpp's are.
class FrontendMetrics final {
 public:
  FrontendMetrics();
  FrontendMetrics(const FrontendMetrics&) = delete;
  FrontendMetrics& operator=(const FrontendMetrics&) = delete;

  void count_response(uint32_t http_status);
  // Prometheus text format, to stand behind ServingMetrics' on one page.
  [[nodiscard]] std::string serialize() const;

 private:
  // Shared by shape of prometheus-cpp's interface; nobody else keeps it.
  std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Counter>& responses_;
  prometheus::Family<prometheus::Counter>& cuts_;

 public:
  prometheus::Gauge& connections;  // HTTP and RPC, open now
  prometheus::Gauge& generations;  // requests being generated now
  // Clients that were cut off, by what they did.
  prometheus::Counter& cut_unread;       // left more of a stream unread than may wait for them
  prometheus::Counter& cut_slow_reader;  // took nothing of an answer for too long
  prometheus::Counter& cut_slow_body;    // did not send their body in time
  prometheus::Counter& cut_slow_header;  // did not send their header in time
  prometheus::Counter& cut_connections;  // came when all connections were taken
};

}  // namespace troupe
