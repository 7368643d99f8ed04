#pragma once
// The decode worker: takes routed requests, lets its scheduler turn them into steps of the device,
// and sends each step's tokens to the gateways. In the role `mixed` it computes the prompts too.
// Plain state and one function per message; the shell is decode_actor.h.

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "actors/wire/outbox.h"
#include "base/clock.h"
#include "base/metrics/serving_metrics.h"
#include "engine/schedule/scheduler.h"

namespace troupe {

struct DecodeOptions {
  WorkerId worker{0};
  uint64_t incarnation = 1;  // changes with each life of the worker; never 0
  std::string router = "router";
  SchedulerOptions scheduler;
};

// How the core reaches the other two actors of its worker. Non-blocking.
class WorkerPorts {
 public:
  virtual ~WorkerPorts() = default;
  // Answered by on_kv_replies(), in any number of parts.
  virtual void ask_kv(std::vector<KvRequest> requests) = 0;
  // Answered by one on_step_done().
  virtual void submit(StepPlan plan) = 0;
};

// Invariants: a request is known while one of its sequences is; the router hears `finished` exactly
// once for each (request, attempt) that was routed here.
class DecodeCore {
 public:
  // All references must outlive the core.
  DecodeCore(const Clock& clock, wire::Outbox& outbox, WorkerPorts& ports, ServingMetrics& metrics,
             DecodeOptions options);

  void on_routed(wire::Routed message);
  void on_cancelled(const wire::Cancelled& message);
  void on_kv_replies(const std::vector<KvReply>& replies);
  // A failed result means that the device is gone: all requests end with its status, and the worker
  // tells the router that it is stalled from then on.
  void on_step_done(Result<StepResult> result);
  // Every kHeartbeatInterval.
  void on_tick();

  [[nodiscard]] bool idle() const { return scheduler_.idle() && requests_.empty(); }
  void check_invariants() const;

 private:
  struct Request {
    uint32_t attempt = 0;
    std::string gateway;
    std::vector<SequenceId> open;  // its sequences that have not ended
    TimePoint routed{};
  };
  struct Sequence {
    RequestId request;
    uint32_t tokens = 0;  // emitted so far
    uint32_t scores = 0;
    uint32_t prompt_tokens = 0;
    uint32_t cached_tokens = 0;  // of the prompt, at its first reserve
    bool reserved = false;
    std::vector<wire::StopTime> stops;  // passed since the last emission
  };
  using Outgoing = std::map<std::string, wire::Emitted>;  // by gateway

  void act();
  void emit(std::vector<Emission> emissions);
  void add_emission(Emission&& emission, Outgoing& outgoing);
  [[nodiscard]] static wire::End end_of(const Sequence& sequence, const Emission& emission);
  void refuse(const Request& request, RequestId id, SequenceId sequence, const Status& status);
  void forget_sequence(SequenceId id);
  void drop_request(RequestId id);
  void report_gauges();
  [[nodiscard]] bool stalled() const;

  const Clock& clock_;
  wire::Outbox& outbox_;
  WorkerPorts& ports_;
  ServingMetrics& metrics_;
  const DecodeOptions options_;
  Scheduler scheduler_;
  std::unordered_map<RequestId, Request> requests_;
  std::unordered_map<SequenceId, Sequence> sequences_;
  Status device_failed_;
  // The step in flight, and the stamps of the latest one that came back.
  bool step_in_flight_ = false;
  TimePoint step_submitted_{};
  TimePoint last_tick_;
  Duration step_predicted_{0};
  double step_seconds_ = 0.0;  // learned: seconds of a step
  uint64_t step_number_ = 0;
  TimePoint device_started_{}, device_finished_{};
  uint64_t preemptions_reported_ = 0;
};

}  // namespace troupe
