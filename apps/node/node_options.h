#pragma once
// How a program takes part in a cluster.

#include <cstdint>
#include <string>
#include <vector>

#include "base/config/secret.h"
#include "base/config/settings.h"
#include "troupe/status.h"

namespace troupe {

struct NodeOptions {
  std::string host;       // to listen on; empty: the address by which the routers see us
  uint16_t port = 0;      // 0: any free one
  std::string advertise;  // what others call us, HOST or HOST:PORT; empty: what we listen on
  std::vector<std::string> join;  // the routers' nodes, HOST:PORT
  SecretOptions secret;
};

// Declares host, port, advertise, secret-file and the secret's variable.
void add_node_settings(Settings& settings, NodeOptions& options);
// Declares join, which only workers and monitors have.
void add_join_setting(Settings& settings, NodeOptions& options);

// "HOST" and a port as one address; a HOST with colons in brackets.
[[nodiscard]] std::string address_text(const std::string& host, uint16_t port);

struct HostPort {
  std::string host;
  uint16_t port = 0;
};
// "HOST:PORT" or "[HOST]:PORT". kInvalidArgument names what is wrong, and the setting.
[[nodiscard]] Result<HostPort> parse_address(const std::string& text, const std::string& setting);

// The address of this machine from which packets to `target` leave. Sends nothing. kUnavailable:
// the name does not resolve, or there is no way there.
[[nodiscard]] Result<std::string> local_address_towards(const HostPort& target);

// Fills in an empty host: the address towards the first router of the join list, else the loopback
// address; and checks every address. kInvalidArgument: an address is malformed. kUnavailable: there
// is no way to the first router.
[[nodiscard]] Status complete_node_options(NodeOptions& options);

}  // namespace troupe
