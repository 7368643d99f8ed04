#include "apps/node/node_options.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <system_error>

namespace troupe {
namespace {

constexpr const char* kLoopback = "127.0.0.1";

Status bad_address(const std::string& text, const std::string& setting) {
  return invalid_argument(setting + " " + text +
                          ": this is no address; give HOST:PORT, e.g. 10.0.0.7:7000");
}

}  // namespace

void add_node_settings(Settings& settings, NodeOptions& options) {
  settings.add(
      {.name = "host",
       .help = "Address to listen on for other nodes; empty: the one that the routers see"},
      &options.host);
  settings.add({.name = "port", .help = "Port for other nodes; 0: any free one"}, &options.port);
  settings.add({.name = "advertise",
                .help = "HOST or HOST:PORT at which other nodes reach this one, where that is not "
                        "where it listens"},
               &options.advertise);
  add_secret_settings(settings, options.secret);
}

void add_join_setting(Settings& settings, NodeOptions& options) {
  settings.add(
      {.name = "join", .help = "The routers, HOST:PORT; they may start later", .required = true},
      &options.join);
}

std::string address_text(const std::string& host, uint16_t port) {
  const bool brackets = host.find(':') != std::string::npos && host.front() != '[';
  return (brackets ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<HostPort> parse_address(const std::string& text, const std::string& setting) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad_address(text, setting);
  HostPort address{text.substr(0, colon), 0};
  const char* begin = text.data() + colon + 1;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc{} || stop != end || begin == end || address.port == 0) {
    return bad_address(text, setting);
  }
  std::string& host = address.host;
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const bool has_colon = host.find(':') != std::string::npos;
  const bool had_brackets = text.front() == '[';
  if (host.empty() || has_colon != had_brackets || host.find('/') != std::string::npos) {
    return bad_address(text, setting);
  }
  return address;
}

Result<std::string> local_address_towards(const HostPort& target) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* list = nullptr;
  const int failed =
      ::getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &list);
  if (failed != 0) {
    return Status{StatusCode::kUnavailable,
                  "the name " + target.host + " cannot be resolved: " + ::gai_strerror(failed)};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  const int fd = ::socket(list->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  // Connecting a datagram socket only looks up the route.
  const bool found = fd >= 0 && ::connect(fd, list->ai_addr, list->ai_addrlen) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &size) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  std::array<char, NI_MAXHOST> text{};
  if (!found || ::getnameinfo(reinterpret_cast<sockaddr*>(&own), size, text.data(), text.size(),
                              nullptr, 0, NI_NUMERICHOST) != 0) {
    return Status{StatusCode::kUnavailable, "there is no way to " + target.host + ": " +
                                                std::generic_category().message(error)};
  }
  return std::string(text.data());
}

Status complete_node_options(NodeOptions& options) {
  for (const std::string& router : options.join)
    TROUPE_RETURN_IF_ERROR(parse_address(router, "join").status());
  if (options.host.empty()) {
    options.host = kLoopback;
    if (!options.join.empty()) {
      const HostPort router = parse_address(options.join.front(), "join").value();
      TROUPE_ASSIGN_OR_RETURN(options.host, local_address_towards(router));
    }
  }
  if (options.advertise.empty() || options.advertise.rfind(':') == std::string::npos) {
    return ok_status();
  }
  return parse_address(options.advertise, "advertise").status();
}

}  // namespace troupe
