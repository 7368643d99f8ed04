#pragma once
// How clients reach a program that serves them, and which of them may: settings that `troupe serve`
// and the router share.

#include <cstdint>
#include <string>
#include <vector>

#include "actors/gateway/api_keys.h"
#include "actors/gateway/frontend_limits.h"
#include "actors/gateway/http/http_frontend.h"
#include "base/config/api_key_options.h"
#include "base/config/settings.h"
#include "troupe/status.h"

namespace troupe {

struct FrontendOptions {
  ApiKeyOptions api_keys;
  // GET paths that need no key although others do.
  std::vector<std::string> open_paths = {"/health", "/ping", "/version"};
  std::vector<std::string> cors_origins;
  uint32_t connections_max = FrontendLimits{}.connections_max;
};

void add_frontend_settings(Settings& settings, FrontendOptions& options);

// kInvalidArgument: an origin or a path that cannot be one; names the setting.
[[nodiscard]] Status check_frontend_options(const FrontendOptions& options);

// The limits, where the process takes so many requests at once. Raises the process's limit of open
// files as far as it may, and lowers the number of connections where that is not enough, with a
// warning in the log.
[[nodiscard]] FrontendLimits frontend_limits(const FrontendOptions& options,
                                             uint32_t requests_in_flight_max);

// Everything but the pages. `keys` outlives the front end.
[[nodiscard]] HttpFrontendOptions http_options_of(const FrontendOptions& options,
                                                  const ApiKeys& keys);

// Reads the keys anew into `keys`; on an error they stay as they are, and the log says why.
void reload_api_keys(const FrontendOptions& options, ApiKeys& keys);

}  // namespace troupe
