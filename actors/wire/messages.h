#pragma once
// The messages of schema/control.capnp and schema/kv.capnp as plain values: what the actor cores
// take and give. The schema tells who sends each one and when; codec.h turns them into bytes and
// back.

#include <cstddef>
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
#include "kernels/ops/kv_storage.h"
#include "troupe/status.h"
#include "troupe/transport.h"

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
  std::string model;  // digest, or empty: the only one
  bool operator==(const Request&) const = default;
};

struct Accepted {
  Request request;
  bool operator==(const Accepted&) const = default;
};

struct Routed {
  Request request;
  uint32_t attempt = 0;
  std::string prefill;  // endpoint of the prefill worker, or empty
  std::chrono::milliseconds prefill_wait{0};
  std::string router;           // endpoint
  uint32_t prefill_tokens = 0;  // 0: all but the last
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
  std::vector<float> embedding;
  std::vector<StopTime> stops;
  Duration compute{0};
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

// What a worker does.
enum class Role : uint8_t { kMixed, kPrefill, kDecode };
[[nodiscard]] const char* to_string(Role role);

struct Load {
  uint32_t running = 0, waiting = 0;
  uint64_t queued_tokens = 0;  // of prompts, still to be computed
  uint32_t blocks_total = 0, blocks_used = 0;
  double seconds_per_token = 0.0;  // of prompt; 0: unknown
  double seconds_per_step = 0.0;   // that decodes; 0: unknown
  bool operator==(const Load&) const = default;
};

struct Heartbeat {
  WorkerId worker;
  uint64_t incarnation = 0;
  bool stalled = false;
  std::chrono::milliseconds step_age{0};
  std::string endpoint;
  Role role = Role::kMixed;
  bool draining = false;
  bool left = false;
  std::string model;  // digest
  uint32_t context_tokens = 0;
  Load load;
  std::string model_name;  // for people
  KvType kv_type = KvType::kF16;
  bool operator==(const Heartbeat&) const = default;
};

struct Refused {
  std::string reason;
  bool operator==(const Refused&) const = default;
};

struct WorkerStatus {
  WorkerId worker;
  std::string endpoint;
  Role role = Role::kMixed;
  bool accepting = false;
  std::string state;
  uint64_t incarnation = 0;
  uint32_t requests = 0;
  std::chrono::milliseconds heard{0};  // since its last heartbeat
  Load load;
  std::string model;       // digest
  std::string model_name;  // for people
  bool operator==(const WorkerStatus&) const = default;
};

struct Health {
  bool healthy = false;
  std::string reason;
  std::vector<WorkerStatus> workers;
  uint32_t requests = 0;
  bool operator==(const Health&) const = default;
};

struct Observe {
  std::string endpoint;
  bool operator==(const Observe&) const = default;
};

struct Describe {
  std::string reply_to;
  bool operator==(const Describe&) const = default;
};

struct Described {
  std::string model;  // digest
  std::string name;
  uint32_t context_tokens = 0;
  std::vector<std::byte> header;          // of the GGUF file
  std::vector<std::string> served_names;  // empty: `name`
  bool operator==(const Described&) const = default;
};

// --- schema/kv.capnp

struct Reserved {
  RequestId request;
  uint32_t attempt = 0;
  std::string reply_to;  // endpoint
  BulkTicket ticket;
  std::vector<TokenId> tokens;
  std::string cache_salt;
  uint32_t first_block = 0;
  std::chrono::milliseconds deadline{0};
  uint32_t layers = 0;
  uint64_t block_bytes = 0;  // of one layer
  std::string model;         // digest
  uint32_t window_layers = 0, window = 0;
  KvType kv_type = KvType::kF16;
  bool operator==(const Reserved&) const = default;
};

struct Prefilled {
  uint64_t landing = 0;
  Status error;
  uint32_t cached_tokens = 0;
  TimePoint compute_started{}, compute_finished{}, finished{};
  bool operator==(const Prefilled&) const = default;
};

struct Released {
  uint64_t landing = 0;
  bool operator==(const Released&) const = default;
};

using Message =
    std::variant<Accepted, Routed, Rejected, Cancelled, Emitted, Finished, Heartbeat, Health,
                 Reserved, Prefilled, Released, Refused, Observe, Describe, Described>;

}  // namespace troupe::wire
