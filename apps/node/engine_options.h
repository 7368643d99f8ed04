#pragma once
// How a model is computed: what every program that loads one is told.

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/settings.h"
#include "base/limits.h"
#include "engine/schedule/draft/draft_pace.h"
#include "engine/schedule/limits.h"
#include "kernels/ops/kv_storage.h"
#include "troupe/status.h"

namespace troupe {

struct EngineOptions {
  std::string model_path;
  std::string backend = "cpu";        // or "reference": plain fp32, slow, the yardstick
  uint32_t threads = 0;               // 0: one per core that the process may use
  int32_t numa_node = -1;             // to stay on with threads and memory; -1: anywhere
  std::string cpu_features = "auto";  // or a name of kernels/cpu/isa.h
  uint64_t kv_memory_mib = 0;         // 0: a quarter of the available memory, at most 4 GiB …
  uint32_t kv_memory_parts = 1;       // … divided by this: the models of one process
  uint32_t kv_blocks = 0;             // overrides kv_memory_mib
  uint32_t kv_window_blocks = 0;      // of layers with a window; 0: in proportion, kv_pool_sizes.h
  std::string kv_cache_dtype = "auto";  // or "f16", "int8"; see kv_type_of()
  uint32_t context_tokens = 0;          // 0: the model's
  uint32_t step_tokens_max = kStepTokensDefault;
  uint32_t step_time_ms = kStepTimeDefault.count();  // 0: no matter
  uint32_t running_max = kRunningSequencesMax;
  std::string speculation = "auto";  // or "off"
  uint32_t requests_in_flight_max = limits::kRequestsInFlightDefault;
};

// SchedulerOptions::guesses_max of these options.
[[nodiscard]] inline uint32_t guesses_max(const EngineOptions& options) {
  return options.speculation == "off" ? 0 : kDraftTokensMax;
}

// How `backend` stores KV when asked for `kv_cache_dtype`. auto: f16, or fp32 for the reference
// backend, which has nothing else: kInvalidArgument.
[[nodiscard]] Result<KvType> kv_type_of(const std::string& kv_cache_dtype,
                                        const std::string& backend);

// Declares a setting for each of them but requests_in_flight_max, which is a router's.
void add_engine_settings(Settings& settings, EngineOptions& options);
// The same for a program that loads several models.
void add_engine_settings(Settings& settings, EngineOptions& options,
                         std::vector<std::string>& model_paths);
// Declares served-model-name; `what` says whose names they are.
void add_served_name_setting(Settings& settings, const std::string& what,
                             std::vector<std::string>& names);

}  // namespace troupe
