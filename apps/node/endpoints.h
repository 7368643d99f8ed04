#pragma once
// The names of endpoints within a node.

namespace troupe {

inline constexpr const char* kWorkerEndpoint = "worker";
inline constexpr const char* kRouterEndpoint = "router";
inline constexpr const char* kGatewayEndpoint = "gateway";
// Where a worker says what model it has.
inline constexpr const char* kModelEndpoint = "model";

}  // namespace troupe
