#include "apps/node/frontend_options.h"

#include <glog/logging.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/os/open_files.h"

namespace troupe {
namespace {

// Of a connection: its socket, and another one for it that tells when its client leaves.
constexpr uint64_t kFilesPerConnection = 2;
// Files, event queues, other nodes.
constexpr uint64_t kFilesReserved = 256;
constexpr uint32_t kConnectionsMin = 16;

// Nothing of what only holders of a key may ask for.
constexpr auto kPathsThatMayBeOpen = std::to_array<std::string_view>(
    {"/health", "/ping", "/version", "/metrics", "/cluster", "/v1/models"});

Status check_origin(const std::string& origin) {
  if (origin == "*") return ok_status();
  const size_t scheme = origin.find("://");
  const std::string_view rest =
      scheme == std::string::npos ? "" : std::string_view(origin).substr(scheme + 3);
  const bool plain = std::all_of(origin.begin(), origin.end(), [](char c) {
    return c > ' ' && c <= '~' && (c < 'A' || c > 'Z');
  });
  if (!plain || rest.empty() || rest.find_first_of("/?#*,") != std::string_view::npos) {
    return invalid_argument("cors-origin \"" + origin +
                                "\" is no origin; write for example https://app.example.org or "
                                "http://localhost:3000, in lower case and without a path, or *",
                            "cors-origin");
  }
  return ok_status();
}

}  // namespace

void add_frontend_settings(Settings& settings, FrontendOptions& options) {
  add_api_key_settings(settings, options.api_keys);
  settings.add({.name = "open-paths",
                .help = "Paths that need no API key; /metrics, /cluster, /v1/models may be added"},
               &options.open_paths);
  settings.add({.name = "cors-origin",
                .help = "Origin of web pages that may ask, or *; may be repeated; none: no page"},
               &options.cors_origins);
  settings.add({.name = "max-connections",
                .help = "Connections of clients; further ones get 503 and are closed",
                .least = kConnectionsMin,
                .most = 1 << 20},
               &options.connections_max);
}

Status check_frontend_options(const FrontendOptions& options) {
  for (const std::string& origin : options.cors_origins)
    TROUPE_RETURN_IF_ERROR(check_origin(origin));
  for (const std::string& path : options.open_paths) {
    if (std::find(kPathsThatMayBeOpen.begin(), kPathsThatMayBeOpen.end(), path) !=
        kPathsThatMayBeOpen.end()) {
      continue;
    }
    std::string all;
    for (const std::string_view known : kPathsThatMayBeOpen)
      all += (all.empty() ? "" : ", ") + std::string(known);
    return invalid_argument("open-paths: " + path + " cannot be open; these can: " + all,
                            "open-paths");
  }
  return ok_status();
}

FrontendLimits frontend_limits(const FrontendOptions& options, uint32_t requests_in_flight_max) {
  FrontendLimits limits;
  limits.generations_max = requests_in_flight_max;
  limits.connections_max = options.connections_max;
  const uint64_t wanted = kFilesReserved + kFilesPerConnection * limits.connections_max;
  const uint64_t files = raise_open_files(wanted);
  if (files >= wanted) return limits;
  const uint64_t fit = files > kFilesReserved ? (files - kFilesReserved) / kFilesPerConnection : 0;
  limits.connections_max = static_cast<uint32_t>(std::max<uint64_t>(kConnectionsMin, fit));
  LOG(WARNING) << "this process may open only " << files << " files, so it takes "
               << limits.connections_max << " connections and not " << options.connections_max
               << "; raise the limit (ulimit -Hn, LimitNOFILE) to " << wanted;
  return limits;
}

HttpFrontendOptions http_options_of(const FrontendOptions& options, const ApiKeys& keys) {
  HttpFrontendOptions http;
  http.version = TROUPE_VERSION;
  http.keys = &keys;
  http.open_paths = options.open_paths;
  http.cors_origins = options.cors_origins;
  return http;
}

void reload_api_keys(const FrontendOptions& options, ApiKeys& keys) {
  const auto read = read_api_keys(options.api_keys);
  if (!read.ok()) {
    LOG(ERROR) << "the API keys stay as they are: " << read.status().message();
    return;
  }
  // A server that wanted keys does not open itself to everybody while it runs, nor the reverse.
  if (read->empty() == keys.required()) {
    LOG(ERROR) << "the API keys stay as they are: start the program anew to want keys or none";
    return;
  }
  keys.replace(read.value());
  LOG(INFO) << "read the API keys anew: " << read->size();
}

}  // namespace troupe
