#pragma once
// The gateway behind its front ends: gives requests their ids, keeps the count of each sequence's
// tokens, and sees to it that every request ends exactly once. Runs on the event-loop thread alone.

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "actors/gateway/generation.h"
#include "actors/wire/outbox.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"

namespace troupe {

struct GatewayOptions {
  std::string endpoint = "gateway";  // where the answers come to
  std::string router = "router";
  // Of the requests and sequences that it names, one after the other; below 2^62. Where several
  // gateways share workers, each start of each takes another, at random.
  uint64_t first_id = 1;
  // A node's monotonic clock minus ours, as far as it is known: its time stamps are of no use
  // without. Unset: everybody runs by one clock.
  std::function<std::optional<Duration>(std::string_view node)> clock_offset;
  // Where the requests for the model with this digest are counted; what it returns outlives the
  // core. Unset: all by the core's own metrics.
  std::function<ServingMetrics&(std::string_view model)> metrics_of;
};

// Invariants: a request is in `requests_` from submit() until its listener has heard its end or it
// was cancelled; a sequence is in `sequences_` while its choice has not ended.
class GatewayCore final : public Generator {
 public:
  // All references must outlive the core.
  GatewayCore(const Clock& clock, wire::Outbox& outbox, ServingMetrics& metrics,
              GatewayOptions options);

  [[nodiscard]] Result<RequestId> submit(GenerationRequest request,
                                         GenerationListener& listener) override;
  void cancel(RequestId request) override;
  GenerationUsage cancel_choice(RequestId request, uint32_t choice) override;

  void on_emitted(const wire::Emitted& message);
  void on_rejected(const wire::Rejected& message);
  void on_health(const wire::Health& message);
  // Every kHeartbeatInterval: a router that is silent for kHeartbeatTimeout is lost, and its
  // requests with it.
  void on_tick();

  // Ok, or why this gateway can serve nothing now.
  [[nodiscard]] Status health() const;
  // The same of requests for one model.
  [[nodiscard]] Status health_of(std::string_view model) const;
  [[nodiscard]] size_t requests_in_flight() const { return requests_.size(); }
  void check_invariants() const;

 private:
  struct Choice {
    SequenceId sequence;
    uint32_t tokens = 0;  // received: index of the next one
    uint32_t scores = 0;
    uint32_t cached_tokens = 0;  // of the prompt; known with its first token
    bool ended = false;
    TimePoint first_token{}, last_token{};
    Duration compute{0};  // of devices, in steps for it
    // Its emissions' time on the way here; nothing once one of them could not be measured.
    std::optional<Duration> network{Duration{0}};
    // When its worker says that it passed a stop, by the worker's clock.
    std::array<std::optional<TimePoint>, kStopCount> passed{};
  };
  struct Request {
    std::string label;
    GenerationListener* listener = nullptr;
    ServingMetrics* metrics = nullptr;  // of its model
    std::vector<Choice> choices;
    uint32_t choices_open = 0;
    uint32_t prompt_tokens = 0, output_tokens = 0;
    uint32_t attempt = 1;
    TimePoint accepted{};
    bool counted = false;  // its prompt, in the metrics
  };
  struct Place {
    RequestId request;
    uint32_t choice = 0;
  };

  void on_emission(const wire::Emission& emission, std::optional<Duration> on_the_way);
  [[nodiscard]] std::optional<Duration> time_on_the_way(const wire::Emitted& message) const;
  void take_models(const wire::Health& message);
  void take_tokens(Request& request, Choice& choice, const std::vector<SampledToken>& tokens);
  void end_choice(Request& request, Choice& choice);
  void fail(RequestId id, const Status& status);
  void take_stops(Request& request, Choice& choice, const wire::Emission& emission);
  void measure_end(const Request& request, const Choice& choice);
  void close(RequestId id, const char* how);
  void log(RequestId id, const Request& request, const char* how) const;

  const Clock& clock_;
  wire::Outbox& outbox_;
  ServingMetrics& metrics_;
  const GatewayOptions options_;
  uint64_t next_id_;
  std::unordered_map<RequestId, Request> requests_;
  std::unordered_map<SequenceId, Place> sequences_;
  std::unordered_map<WorkerId, std::string> worker_nodes_;
  // By the digest of each model that the router knows workers of: why none of them can decode;
  // empty when one can.
  std::map<std::string, std::string, std::less<>> models_;
  bool healthy_ = false;
  std::string reason_ = "the router has not been heard of yet";
  TimePoint last_health_;
  TimePoint last_tick_;
};

}  // namespace troupe
