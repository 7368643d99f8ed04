#pragma once
// What the clients of a simulated cluster ask for, and when.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/sample/sampling_params.h"

namespace troupe::sim {

struct SimRequest {
  std::vector<TokenId> prompt;
  std::vector<SamplingParams> choices;
  std::string cache_salt;
  uint64_t front = 0;  // which front end it goes to, modulo their number
  // The client leaves after that time, or that many tokens of its first choice.
  std::optional<Duration> leaves_after;
  std::optional<uint32_t> leaves_after_tokens;
  // It needs no more of the last choice after so many tokens (a stop string).
  std::optional<uint32_t> stops_last_choice_after;
  uint32_t retries = 0;  // how often it asks again when nobody can serve it
};

// Made one by one, when they are due: a long trace's prompts do not fit the memory at once.
class Workload {
 public:
  virtual ~Workload() = default;
  [[nodiscard]] virtual size_t size() const = 0;
  // Since the beginning; never falls from one to the next.
  [[nodiscard]] virtual Duration arrival(size_t index) const = 0;
  // The same for each call.
  [[nodiscard]] virtual SimRequest make(size_t index) const = 0;
};

struct RandomWorkloadOptions {
  uint64_t seed = 1;
  uint32_t requests = 100;
  Duration window = std::chrono::seconds(10);  // of the arrivals
  bool bursts = false;                         // they come in a few heaps
  uint32_t vocabulary = 40;
  uint32_t prompt_tokens_max = 300;
  uint32_t output_tokens_max = 60;
  uint32_t context_tokens = 2048;
  uint32_t shared_prefixes = 4;  // prompts begin with one of them, half of the time
  uint32_t choices_max = 1;
  // Shares of the requests.
  double leave = 0.0;
  double score_prompt = 0.0;
  double logprobs = 0.0;
  double salted = 0.0;
  double named_stops = 0.0;
  double pooled = 0.0;
  uint32_t retries = 0;
};

class RandomWorkload final : public Workload {
 public:
  explicit RandomWorkload(const RandomWorkloadOptions& options);
  [[nodiscard]] size_t size() const override { return arrivals_.size(); }
  [[nodiscard]] Duration arrival(size_t index) const override { return arrivals_[index]; }
  [[nodiscard]] SimRequest make(size_t index) const override;

 private:
  const RandomWorkloadOptions options_;
  std::vector<Duration> arrivals_;
  std::vector<std::vector<TokenId>> prefixes_;
};

}  // namespace troupe::sim
