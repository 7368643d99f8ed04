#include "actors/gateway/frontend_load.h"

#include <algorithm>
#include <cstdio>

#include "base/philox.h"

namespace troupe {

namespace {

constexpr uint32_t kResponseIdStream = 0x69640000;
constexpr uint32_t kDefaultSeedStream = 0x73656564;

}  // namespace

FrontendLoad::FrontendLoad(FrontendLimits limits, uint64_t incarnation)
    : limits_(limits), incarnation_(incarnation) {}

std::optional<LoadTicket> FrontendLoad::open_connection() {
  if (connections_ >= limits_.connections_max) {
    metrics_.cut_connections.Increment();
    return std::nullopt;
  }
  return std::optional<LoadTicket>(std::in_place, connections_);
}

Result<LoadTicket> FrontendLoad::begin_generation() {
  if (generations_ >= limits_.generations_max) {
    return Status(StatusCode::kResourceExhausted,
                  "this server is generating " + std::to_string(limits_.generations_max) +
                      " requests, as many as it takes at once; try again soon");
  }
  return LoadTicket(generations_);
}

std::string FrontendLoad::serialize_metrics() {
  metrics_.connections.Set(connections_);
  metrics_.generations.Set(generations_);
  return metrics_.serialize();
}

std::string FrontendLoad::response_id(std::string_view prefix, uint64_t request) const {
  char buffer[40];
  const uint64_t process = philox_u64(incarnation_, 0, kResponseIdStream);
  std::snprintf(buffer, sizeof buffer, "%016llx%08llx", static_cast<unsigned long long>(process),
                static_cast<unsigned long long>(request));
  return std::string(prefix) + buffer;
}

uint64_t FrontendLoad::default_seed(uint64_t request) const {
  return philox_u64(incarnation_, request, kDefaultSeedStream);
}

bool is_usable_request_id(std::string_view id) {
  return !id.empty() && id.size() <= kRequestIdBytesMax &&
         std::all_of(id.begin(), id.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

}  // namespace troupe
