#include "apps/node/node_options.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "transport/ucx/ucx_transport.h"

namespace troupe {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
// Of a block that nobody has (RFC 5737): its route is the default one.
constexpr const char* kAnywhere = "192.0.2.1";
constexpr uint16_t kAnyPort = 9;
// A few keepalives, and what a person would wait.
constexpr int kPeerTimeoutMsMin = 300;
constexpr int kPeerTimeoutMsMax = 60000;

// `setting` HOST:PORT with a numeric host.
Result<std::string> numeric(const std::string& setting, const std::string& address) {
  auto resolved = resolve_node(address);
  if (resolved.ok()) return resolved;
  return Status{resolved.status().code(), setting + ": " + resolved.status().message()};
}

// The address of this machine from which packets to the numeric address leave; sends none.
std::string local_address_towards(const std::string& ipv4) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(kAnyPort);
  if (::inet_pton(AF_INET, ipv4.c_str(), &address.sin_addr) != 1) return kLoopback;
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return kLoopback;
  socklen_t size = sizeof address;
  auto* as_sockaddr = reinterpret_cast<sockaddr*>(&address);
  // Connecting a datagram socket only looks up the route.
  const bool found =
      ::connect(fd, as_sockaddr, size) == 0 && ::getsockname(fd, as_sockaddr, &size) == 0;
  ::close(fd);
  std::array<char, INET_ADDRSTRLEN> text{};
  if (!found || !::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size()))
    return kLoopback;
  return text.data();
}

}  // namespace

void add_node_settings(Settings& settings, NodeOptions& options) {
  settings.add({.name = "host",
                .help = "This machine's address for other nodes; empty: the one that they see"},
               &options.host);
  settings.add({.name = "port", .help = "Port for other nodes; 0: any free one"}, &options.port);
  settings.add({.name = "peer-timeout-ms",
                .help = "A node silent for so long is taken for dead; more where machines pause",
                .least = kPeerTimeoutMsMin,
                .most = kPeerTimeoutMsMax},
               &options.peer_timeout_ms);
  add_secret_settings(settings, options.secret);
}

void add_join_setting(Settings& settings, NodeOptions& options) {
  settings.add({.name = "join",
                .help = "The routers' nodes, HOST:PORT; they may start later",
                .required = true},
               &options.join);
}

Status complete_node_options(NodeOptions& options) {
  for (std::string& router : options.join) {
    TROUPE_ASSIGN_OR_RETURN(router, numeric("join", router));
  }
  if (options.host.empty()) {
    const std::string target = options.join.empty() ? kAnywhere : options.join.front();
    options.host = local_address_towards(target.substr(0, target.rfind(':')));
    return ok_status();
  }
  TROUPE_ASSIGN_OR_RETURN(const std::string own, numeric("host", options.host + ":1"));
  options.host = own.substr(0, own.rfind(':'));
  return ok_status();
}

}  // namespace troupe
