#pragma once
// The messages of schema/control.capnp as plain values: what the actor cores take and give. The
// schema tells who sends each one and when; codec.h turns them into bytes and back.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/stop.h"
#include "engine/finish_reason.h"
#include "engine/sample/sampling_params.h"
#include "troupe/status.h"

namespace troupe::wire {

struct StopTime {
  Stop stop = Stop::kAccepted;
  TimePoint at{};
  bool operator==(const StopTime&) const = default;
};

struct Sequence {
  SequenceId id;
  SamplingParams params;
  bool operator==(const Sequence&) const = default;
};

struct Request {
  RequestId id;
  std::string label;
  std::string gateway;  // endpoint
  std::vector<TokenId> prompt;
  std::vector<Sequence> sequences;
  std::string cache_salt;
  TimePoint accepted{};
  bool operator==(const Request&) const = default;
};

struct Accepted {
  Request request;
  bool operator==(const Accepted&) const = default;
};

struct Routed {
  Request request;
  uint32_t attempt = 0;
  bool operator==(const Routed&) const = default;
};

struct Rejected {
  RequestId request;
  uint32_t attempt = 0;
  Status error;
  std::chrono::milliseconds retry_after{0};
  bool operator==(const Rejected&) const = default;
};

struct Cancelled {
  RequestId request;
  std::vector<SequenceId> sequences;  // empty: all of the request
  bool operator==(const Cancelled&) const = default;
};

struct End {
  FinishReason reason = FinishReason::kStop;  // meaningful when error is ok
  Status error;
  TokenId stop_token = -1;
  uint32_t prompt_tokens = 0, cached_tokens = 0, output_tokens = 0;
  bool operator==(const End&) const = default;
};

struct Emission {
  RequestId request;
  SequenceId sequence;
  uint32_t attempt = 0;
  uint32_t first_index = 0;
  uint32_t cached_tokens = 0;
  std::vector<SampledToken> tokens;
  uint32_t first_score = 0;
  std::vector<SampledToken> prompt_scores;
  std::vector<StopTime> stops;
  std::optional<End> end;
  bool operator==(const Emission&) const = default;
};

struct Emitted {
  WorkerId worker;
  uint64_t step = 0;
  TimePoint device_started{}, device_finished{}, sent{};
  std::vector<Emission> emissions;
  bool operator==(const Emitted&) const = default;
};

struct Finished {
  RequestId request;
  uint32_t attempt = 0;
  WorkerId worker;
  bool operator==(const Finished&) const = default;
};

struct Heartbeat {
  WorkerId worker;
  uint64_t incarnation = 0;
  bool stalled = false;
  std::chrono::milliseconds step_age{0};
  bool operator==(const Heartbeat&) const = default;
};

struct Health {
  bool healthy = false;
  std::string reason;
  bool operator==(const Health&) const = default;
};

using Message =
    std::variant<Accepted, Routed, Rejected, Cancelled, Emitted, Finished, Heartbeat, Health>;

}  // namespace troupe::wire
