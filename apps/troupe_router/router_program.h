#pragma once
// The program of a router: front ends, gateway and router in one process, without a model file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/node/answer_options.h"
#include "apps/node/chat_templates.h"
#include "apps/node/frontend_options.h"
#include "apps/node/node_options.h"
#include "base/limits.h"
#include "troupe/status.h"

namespace troupe {

struct RouterProgramOptions {
  NodeOptions node;
  std::string http_host = "127.0.0.1";
  uint16_t http_port = 8000;
  std::optional<uint16_t> rpc_port;       // 0: any free one
  std::vector<std::string> served_names;  // of a cluster's only model; none: as its workers say
  ChatTemplateOptions templates;
  AnswerOptions answers;
  FrontendOptions frontend;
  uint32_t requests_in_flight_max = limits::kRequestsInFlightDefault;
  uint32_t drain_seconds = static_cast<uint32_t>(limits::kDrainDeadline.count());
};

// Runs until a signal ends it.
[[nodiscard]] Status run_router(RouterProgramOptions options);

}  // namespace troupe
