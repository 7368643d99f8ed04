#include "base/metrics/serving_metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <vector>

namespace troupe {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kFirstTokenSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                    0.25,  0.5,   0.75, 1.0,  2.5,  5.0,  7.5,  10,
                                    20,    40,    80,   160,  640,  2560};
const Buckets kTokenSeconds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3,
                               0.4,   0.5,    0.75,  1.0,  2.5,   5.0,  7.5,   10,  20,   40,  80};
const Buckets kRequestSeconds = {0.01, 0.05, 0.1, 0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0,  10,
                                 15,   20,   30,  40,  50,  60,  120, 240, 480, 960, 1920, 7680};
const Buckets kNetworkSeconds = {0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02,
                                 0.05,    0.1,    0.2,    0.5,    1.0,   2.0,   5.0,   10};
const Buckets kTokens = {1,   2,    5,    10,   20,    50,    100,   200,
                         500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};
const Buckets kStepTokens = {1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
const Buckets kChoices = {1, 2, 5, 10, 20};

constexpr const char* kModelLabel = "model_name";
constexpr const char* kBlocksTotalHelp = "KV blocks of the pool.";
constexpr const char* kBlocksFreeHelp = "KV blocks without content.";
constexpr const char* kBlocksCachedHelp = "KV blocks that no sequence holds, kept as prefix cache.";
constexpr const char* kBlocksHeldHelp = "KV blocks that sequences hold.";
constexpr const char* kBlocksLeasedHelp = "KV blocks that a transfer may write.";
constexpr const char* kImportsHelp =
    "Prompts whose KV came from another worker, whole or cut short.";
constexpr const char* kExportsHelp =
    "Prompts computed for another worker, moved whole or cut short.";

}  // namespace

ServingMetrics::ServingMetrics(const std::string& model_name)
    : labels_{{"engine", "0"}},
      model_name_(model_name),
      registry_(std::make_shared<prometheus::Registry>()),
      requests_running(gauge("vllm:num_requests_running", "Sequences that hold KV blocks.")),
      requests_waiting(gauge("vllm:num_requests_waiting", "Sequences that wait to be admitted.")),
      kv_cache_usage(gauge("vllm:kv_cache_usage_perc",
                           "Share of the KV blocks that sequences hold; 1 means all.")),
      kv_blocks_total(gauge("troupe_kv_blocks_total", kBlocksTotalHelp)),
      kv_blocks_free(gauge("troupe_kv_blocks_free", kBlocksFreeHelp)),
      kv_blocks_cached(gauge("troupe_kv_blocks_cached", kBlocksCachedHelp)),
      kv_blocks_held(gauge("troupe_kv_blocks_held", kBlocksHeldHelp)),
      kv_blocks_leased(gauge("troupe_kv_blocks_leased", kBlocksLeasedHelp)),
      prefix_cache_queries(counter("vllm:prefix_cache_queries_total",
                                   "Prompt tokens looked up in the prefix cache.")),
      prefix_cache_hits(
          counter("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache.")),
      preemptions(counter("vllm:num_preemptions_total",
                          "Times that a sequence gave back blocks for others.")),
      spec_drafts(counter("vllm:spec_decode_num_drafts_total",
                          "Times that a sequence's next tokens were guessed.")),
      spec_draft_tokens(counter("vllm:spec_decode_num_draft_tokens_total", "Tokens guessed.")),
      spec_accepted_tokens(
          counter("vllm:spec_decode_num_accepted_tokens_total", "Guessed tokens that were right.")),
      iteration_tokens(
          histogram("vllm:iteration_tokens_total", "Tokens computed in one step.", kStepTokens)),
      kv_imports_whole(counter("troupe_kv_imports_total", kImportsHelp, {{"result", "whole"}})),
      kv_imports_cut(counter("troupe_kv_imports_total", kImportsHelp, {{"result", "cut"}})),
      kv_blocks_imported(
          counter("troupe_kv_blocks_imported_total", "KV blocks that came from other workers.")),
      kv_exports_whole(counter("troupe_kv_exports_total", kExportsHelp, {{"result", "whole"}})),
      kv_exports_cut(counter("troupe_kv_exports_total", kExportsHelp, {{"result", "cut"}})),
      kv_blocks_exported(
          counter("troupe_kv_blocks_exported_total", "KV blocks that went to other workers.")),
      kv_exposed_seconds(histogram("troupe_kv_exposed_seconds",
                                   "From a prompt's last step to the arrival of its last KV.",
                                   kNetworkSeconds)),
      prompt_tokens(counter("vllm:prompt_tokens_total", "Prompt tokens of requests served.")),
      generation_tokens(counter("vllm:generation_tokens_total", "Tokens generated.")),
      finished_stop(counter("vllm:request_success_total", "Sequences that ended.",
                            {{"finished_reason", "stop"}})),
      finished_length(counter("vllm:request_success_total", "Sequences that ended.",
                              {{"finished_reason", "length"}})),
      finished_abort(counter("vllm:request_success_total", "Sequences that ended.",
                             {{"finished_reason", "abort"}})),
      finished_error(counter("vllm:request_success_total", "Sequences that ended.",
                             {{"finished_reason", "error"}})),
      time_to_first_token(histogram("vllm:time_to_first_token_seconds",
                                    "From accepted to the first token at the gateway.",
                                    kFirstTokenSeconds)),
      inter_token_latency(histogram("vllm:inter_token_latency_seconds",
                                    "Between two emissions of one sequence.", kTokenSeconds)),
      time_per_output_token(histogram("vllm:request_time_per_output_token_seconds",
                                      "(end - first token) / (tokens - 1) of one sequence.",
                                      kTokenSeconds)),
      e2e_latency(histogram("vllm:e2e_request_latency_seconds", "From accepted to the end.",
                            kRequestSeconds)),
      queue_time(histogram("vllm:request_queue_time_seconds", "From accepted to reserved blocks.",
                           kRequestSeconds)),
      inference_time(histogram("vllm:request_inference_time_seconds",
                               "From reserved blocks to the end.", kRequestSeconds)),
      prefill_time(histogram("vllm:request_prefill_time_seconds",
                             "From reserved blocks to the first token.", kRequestSeconds)),
      decode_time(histogram("vllm:request_decode_time_seconds", "From the first token to the end.",
                            kRequestSeconds)),
      network_seconds(histogram("troupe_network_seconds",
                                "A sequence's emissions on their way from the worker to the "
                                "gateway, in all.",
                                kNetworkSeconds)),
      compute_seconds(histogram("troupe_compute_seconds",
                                "A sequence's steps on the device, in all.", kRequestSeconds)),
      request_prompt_tokens(
          histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", kTokens)),
      request_generation_tokens(
          histogram("vllm:request_generation_tokens", "Tokens generated for a sequence.", kTokens)),
      request_params_n(histogram("vllm:request_params_n", "n of a request.", kChoices)),
      request_params_max_tokens(
          histogram("vllm:request_params_max_tokens", "max_tokens of a sequence.", kTokens)) {
  for (const Stop stop : {Stop::kReserved, Stop::kPrefilled, Stop::kMoved, Stop::kJoined,
                          Stop::kEmitted, Stop::kFinished}) {
    stop_seconds[static_cast<size_t>(stop)] =
        &histogram("troupe_stop_seconds", "Time until a sequence passed a stop of its way.",
                   kRequestSeconds, {{"stop", to_string(stop)}});
  }
}

void ServingMetrics::set_model_name(const std::string& model_name) {
  const std::lock_guard lock(mutex_);
  model_name_ = model_name;
}

std::vector<prometheus::MetricFamily> ServingMetrics::collect() const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  const std::lock_guard lock(mutex_);
  for (prometheus::MetricFamily& family : families) {
    for (prometheus::ClientMetric& metric : family.metric) {
      const prometheus::ClientMetric::Label label{kModelLabel, model_name_};
      const auto place = std::lower_bound(metric.label.begin(), metric.label.end(), label);
      metric.label.insert(place, label);
    }
  }
  return families;
}

std::string ServingMetrics::serialize() const {
  return prometheus::TextSerializer().Serialize(collect());
}

ServingMetrics::KvGauges ServingMetrics::window_kv() {
  const auto add = [this](const char* name, const char* help) -> prometheus::Gauge& {
    return gauge(name, help, {{"group", "window"}});
  };
  return {add("troupe_kv_blocks_total", kBlocksTotalHelp),
          add("troupe_kv_blocks_free", kBlocksFreeHelp),
          add("troupe_kv_blocks_cached", kBlocksCachedHelp),
          add("troupe_kv_blocks_held", kBlocksHeldHelp),
          add("troupe_kv_blocks_leased", kBlocksLeasedHelp)};
}

void ServingMetrics::describe_kv(uint32_t block_tokens, uint32_t blocks, std::string_view type) {
  gauge("vllm:cache_config_info", "How KV is kept.",
        {{"block_size", std::to_string(block_tokens)},
         {"num_gpu_blocks", std::to_string(blocks)},
         {"cache_dtype", std::string(type)}})
      .Set(1);
}

prometheus::Gauge& ServingMetrics::gauge(const std::string& name, const std::string& help,
                                         std::map<std::string, std::string> extra) {
  extra.insert(labels_.begin(), labels_.end());
  return prometheus::BuildGauge().Name(name).Help(help).Register(*registry_).Add(extra);
}

prometheus::Counter& ServingMetrics::counter(const std::string& name, const std::string& help,
                                             std::map<std::string, std::string> extra) {
  extra.insert(labels_.begin(), labels_.end());
  return prometheus::BuildCounter().Name(name).Help(help).Register(*registry_).Add(extra);
}

prometheus::Histogram& ServingMetrics::histogram(const std::string& name, const std::string& help,
                                                 Buckets buckets,
                                                 std::map<std::string, std::string> extra) {
  extra.insert(labels_.begin(), labels_.end());
  return prometheus::BuildHistogram()
      .Name(name)
      .Help(help)
      .Register(*registry_)
      .Add(extra, std::move(buckets));
}

}  // namespace troupe
