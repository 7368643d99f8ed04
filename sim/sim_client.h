#pragma once
// A client of a simulated cluster: asks, listens, leaves, and knows what it must hear.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "actors/gateway/generation.h"
#include "sim/event_log.h"
#include "sim/plant.h"
#include "sim/sim_front.h"
#include "sim/sim_model.h"
#include "sim/workload.h"

namespace troupe::sim {

// How one request went, in seconds of virtual time.
struct Measured {
  std::vector<float> ttft, tpot, itl, e2e;  // of choices that came to their end; itl of all tokens
  uint64_t requests = 0, refused = 0, failed = 0, left = 0, completed = 0;
  uint64_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;  // of completed ones
  uint64_t within_slo = 0;  // completed, every choice within the bounds
};

struct Slo {
  double ttft_seconds = 10.0, tpot_seconds = 0.1;
};

class SimClient final : public GenerationListener {
 public:
  struct Environment {
    const EventQueue& events;
    EventLog& log;
    Saboteur& saboteur;
    const SimModel& model;
    uint32_t context_tokens = 0;
    // Whether the run loses messages or processes: only then may a request fail half way.
    bool may_lose = false;
    bool checks_tokens = true;
    Slo slo;
    Measured& measured;
  };
  SimClient(const Environment& environment, uint64_t number, SimRequest request);

  // Asks at that front, which must outlive the request or tell by on_front_lost(); null: it is
  // down. False: nobody can serve it now, and it would ask again later.
  [[nodiscard]] bool submit(SimFront* front);
  // It leaves now, if it still listens.
  void leave();
  // The process that it talked to has ended.
  void on_front_lost(const SimFront& front);
  [[nodiscard]] bool over() const { return over_; }
  [[nodiscard]] SimFront* front() { return front_; }
  [[nodiscard]] const SimRequest& request() const { return request_; }
  [[nodiscard]] uint64_t number() const { return number_; }
  // What it still waits for.
  [[nodiscard]] std::string describe() const;

  void on_prompt_scores(std::span<const SampledToken> scores) override;
  void on_tokens(uint32_t choice, std::span<const SampledToken> tokens) override;
  void on_embedding(uint32_t choice, std::span<const float> values) override;
  void on_finished(uint32_t choice, FinishReason reason, TokenId stop_token,
                   const GenerationUsage& usage) override;
  void on_failed(const Status& status) override;

 private:
  struct Choice {
    Answer expected;
    uint32_t tokens = 0;
    bool embedded = false;
    bool ended = false;
    TimePoint first{}, last{};
  };

  void violate(std::string_view oracle, const std::string& what);
  void count_prompt();
  void measure(const Choice& choice);
  void end(uint64_t& how);

  const Environment environment_;
  const uint64_t number_;
  SimRequest request_;
  uint32_t prompt_tokens_ = 0;
  std::vector<Choice> choices_;
  SimFront* front_ = nullptr;
  RequestId id_;
  TimePoint submitted_{};
  size_t scores_ = 0;
  bool over_ = false, prompt_counted_ = false, within_slo_ = true;
};

}  // namespace troupe::sim
