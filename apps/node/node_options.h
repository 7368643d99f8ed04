#pragma once
// How a program takes part in a cluster.

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/secret.h"
#include "base/config/settings.h"
#include "base/limits.h"
#include "troupe/status.h"

namespace troupe {

struct NodeOptions {
  // To listen on for other nodes, which also is what they call us; empty: see
  // complete_node_options().
  std::string host;
  uint16_t port = 0;              // 0: any free one
  std::vector<std::string> join;  // the routers' nodes, HOST:PORT
  SecretOptions secret;
  // A node silent for so long is lost.
  uint32_t peer_timeout_ms = static_cast<uint32_t>(limits::kKeepaliveTimeout.count());
};

// Declares host, port, peer-timeout-ms, secret-file and the secret's variable.
void add_node_settings(Settings& settings, NodeOptions& options);
// Declares join, which only workers and monitors have.
void add_join_setting(Settings& settings, NodeOptions& options);

// Makes the addresses numeric. An empty host becomes the address of this machine from which packets
// to the first of the join list leave, or, without one, to the world; the loopback address if there
// is no way there. kInvalidArgument, kNotFound: an address is malformed, or a name unknown; the
// message names the setting.
[[nodiscard]] Status complete_node_options(NodeOptions& options);

}  // namespace troupe
