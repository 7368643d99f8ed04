#pragma once
// The numbers that a node reports at /metrics. Names and labels are those that dashboards made for
// vLLM expect, so that they work unchanged; names of our own begin with "troupe_".

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/stop.h"

namespace troupe {

// One registry with everything registered at construction, so that a name exists, at zero, before
// its first event. The members are thread-safe. Ownership: the app's, passed by reference.
class ServingMetrics final {
 public:
  explicit ServingMetrics(const std::string& model_name);
  ServingMetrics(const ServingMetrics&) = delete;
  ServingMetrics& operator=(const ServingMetrics&) = delete;

  // For a process that learns only later what model it serves. Thread-safe.
  void set_model_name(const std::string& model_name);

  // Of the windowed layers' own KV blocks: the gauges of the same names, with a label
  // `group="window"`. Registered with the first call, so that only who has such blocks shows any.
  // Thread-safe.
  struct KvGauges {
    prometheus::Gauge &total, &free, &cached, &held, &leased;
  };
  [[nodiscard]] KvGauges window_kv();

  // How KV is kept, as the labels of a gauge that is 1. Once, before anything is collected.
  void describe_kv(uint32_t block_tokens, uint32_t blocks, std::string_view type);

  // The samples with all their labels, in an order that is the same for every object. Thread-safe.
  [[nodiscard]] std::vector<prometheus::MetricFamily> collect() const;
  // Prometheus text format. Thread-safe.
  [[nodiscard]] std::string serialize() const;

 private:
  const std::map<std::string, std::string> labels_;
  mutable std::mutex mutex_;
  std::string model_name_;  // added as a label when serialised
  // Shared by shape of prometheus-cpp's interface; nobody else keeps it.
  std::shared_ptr<prometheus::Registry> registry_;

  prometheus::Gauge& gauge(const std::string& name, const std::string& help,
                           std::map<std::string, std::string> extra = {});
  prometheus::Counter& counter(const std::string& name, const std::string& help,
                               std::map<std::string, std::string> extra = {});
  prometheus::Histogram& histogram(const std::string& name, const std::string& help,
                                   prometheus::Histogram::BucketBoundaries buckets,
                                   std::map<std::string, std::string> extra = {});

 public:
  // Worker: state now.
  prometheus::Gauge& requests_running;
  prometheus::Gauge& requests_waiting;
  prometheus::Gauge& kv_cache_usage;  // share of blocks held by sequences, 0 to 1
  prometheus::Gauge& kv_blocks_total;
  prometheus::Gauge& kv_blocks_free;
  prometheus::Gauge& kv_blocks_cached;  // unlocked: content kept for reuse, evictable
  prometheus::Gauge& kv_blocks_held;    // by sequences, computing and leased ones included
  prometheus::Gauge& kv_blocks_leased;  // of these: being written by a transfer
  // Worker: counts.
  prometheus::Counter& prefix_cache_queries;  // in tokens
  prometheus::Counter& prefix_cache_hits;     // in tokens
  prometheus::Counter& preemptions;
  prometheus::Counter& spec_drafts;           // guesses made for one step of a sequence
  prometheus::Counter& spec_draft_tokens;     // their tokens
  prometheus::Counter& spec_accepted_tokens;  // and those that were right
  prometheus::Histogram& iteration_tokens;
  prometheus::Counter& kv_imports_whole;  // prompts whose KV came from another worker …
  prometheus::Counter& kv_imports_cut;    // … or only a part of it, or nothing
  prometheus::Counter& kv_blocks_imported;
  prometheus::Counter& kv_exports_whole;  // prompts computed for another worker …
  prometheus::Counter& kv_exports_cut;    // … or given up
  prometheus::Counter& kv_blocks_exported;
  // From the end of a prompt's last step to the arrival of its last part: what moving costs beyond
  // computing. The rest of the move was hidden behind it.
  prometheus::Histogram& kv_exposed_seconds;
  // Gateway.
  prometheus::Counter& prompt_tokens;
  prometheus::Counter& generation_tokens;
  prometheus::Counter& finished_stop;
  prometheus::Counter& finished_length;
  prometheus::Counter& finished_abort;
  prometheus::Counter& finished_error;
  prometheus::Histogram& time_to_first_token;
  prometheus::Histogram& inter_token_latency;
  prometheus::Histogram& time_per_output_token;
  prometheus::Histogram& e2e_latency;
  prometheus::Histogram& queue_time;
  prometheus::Histogram& inference_time;
  prometheus::Histogram& prefill_time;
  prometheus::Histogram& decode_time;
  // Of one sequence: its emissions' time on the way from its worker to the gateway, and its steps'
  // time on the device. Slow network and slow compute told apart.
  prometheus::Histogram& network_seconds;
  prometheus::Histogram& compute_seconds;
  prometheus::Histogram& request_prompt_tokens;
  prometheus::Histogram& request_generation_tokens;
  prometheus::Histogram& request_params_n;
  prometheus::Histogram& request_params_max_tokens;
  // By Stop: seconds until a sequence passed it. Those of the worker count from `routed` on, by the
  // worker's clock; `emitted` and `finished` from `accepted` on, by the gateway's.
  std::array<prometheus::Histogram*, kStopCount> stop_seconds{};
};

}  // namespace troupe
