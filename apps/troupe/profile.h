#pragma once
// `troupe profile`: where the time of a forward pass goes, operation by operation.

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "troupe/status.h"

namespace troupe {

// A step in which `sequences` each compute `tokens` new tokens after `context` others, and sample
// the next one.
struct ProfilePhase {
  uint32_t sequences = 1;
  uint32_t tokens = 1;
  uint32_t context = 0;
};

struct ProfileOptions {
  std::string model_path;
  uint32_t threads = 0;  // 0: one per core that the process may use
  std::string cpu_features = "auto";
  std::string kv_cache_dtype = "auto";
  std::vector<std::string> phases;  // as parse_profile_phase() reads them
  uint32_t steps = 20;              // measured, of each phase
  bool json = false;
};

// "8x1@128": 8 sequences, 1 token each, after 128. kInvalidArgument says what is wrong with it.
[[nodiscard]] Result<ProfilePhase> parse_profile_phase(const std::string& text);

// Adds the command, which sets `run`. Both references outlive the parsing.
void add_profile(CLI::App& app, ProfileOptions& options, std::function<int()>& run);

}  // namespace troupe
