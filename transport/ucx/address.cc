#include "transport/ucx/address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "transport/session/limits.h"
#include "transport/ucx/ucx_transport.h"

namespace troupe::ucx {
namespace {

std::string error_text(int error) {
  return std::generic_category().message(error);
}

sockaddr_in socket_address(const HostPort& at) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(at.port);
  out.sin_addr.s_addr = htonl(at.ipv4);
  return out;
}

Result<uint32_t> parse_ipv4(std::string_view host) {
  in_addr out{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &out) != 1) {
    return invalid_argument("'" + std::string(host) + "' is not a numeric IPv4 address");
  }
  return ntohl(out.s_addr);
}

bool split(std::string_view text, std::string_view& host, uint16_t& port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || text.size() > limits::kNodeNameBytesMax) return false;
  host = text.substr(0, colon);
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  return error == std::errc{} && stop == end && port != 0 && !host.empty();
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

Result<HostPort> parse_node(std::string_view node) {
  HostPort out;
  std::string_view host;
  if (!split(node, host, out.port)) {
    return invalid_argument("'" + std::string(node.substr(0, limits::kNodeNameBytesMax)) +
                            "' is not the name of a node; it must look like 10.0.0.7:7000");
  }
  TROUPE_ASSIGN_OR_RETURN(out.ipv4, parse_ipv4(host));
  return out;
}

Result<Socket> listen_at(std::string_view host, uint16_t port, uint16_t& port_out) {
  HostPort at{0, port};
  TROUPE_ASSIGN_OR_RETURN(at.ipv4, parse_ipv4(host));
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address = socket_address(at);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (socket.fd() < 0 || ::setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket.fd(), generic, size) != 0 || ::listen(socket.fd(), SOMAXCONN) != 0 ||
      ::getsockname(socket.fd(), generic, &size) != 0) {
    return Status{StatusCode::kUnavailable, "cannot listen at " + std::string(host) + ":" +
                                                std::to_string(port) + ": " + error_text(errno) +
                                                "; choose another port or address"};
  }
  port_out = ntohs(address.sin_port);
  return socket;
}

Socket accept_from(const Socket& listener, std::string& from) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  Socket socket(::accept4(listener.fd(), reinterpret_cast<sockaddr*>(&address), &size,
                          SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.fd() < 0) return socket;
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  from = std::string(text) + ":" + std::to_string(ntohs(address.sin_port));
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket;
}

Result<Socket> connect_to(const HostPort& to) {
  Socket socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.fd() < 0) {
    return Status{StatusCode::kUnavailable, "no socket: " + error_text(errno)};
  }
  const int on = 1;
  ::setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const sockaddr_in address = socket_address(to);
  if (::connect(socket.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
      errno != EINPROGRESS) {
    return Status{StatusCode::kUnavailable, error_text(errno)};
  }
  return socket;
}

Status connect_status(const Socket& socket) {
  int error = 0;
  socklen_t size = sizeof error;
  if (::getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
  if (error == 0) return ok_status();
  return {StatusCode::kUnavailable, error_text(error)};
}

Result<std::string> interface_of(std::string_view host) {
  TROUPE_ASSIGN_OR_RETURN(const uint32_t ipv4, parse_ipv4(host));
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    return Status{StatusCode::kUnavailable, "no list of interfaces: " + error_text(errno)};
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in address{};
    std::memcpy(&address, i->ifa_addr, sizeof address);
    const uint32_t own = ntohl(address.sin_addr.s_addr);
    // The loopback interface has the whole of 127.0.0.0/8.
    const bool loopback = own >> 24 == 127 && ipv4 >> 24 == 127;
    if (own == ipv4 || loopback) return std::string(i->ifa_name);
  }
  return invalid_argument("no interface of this machine has the address " + std::string(host));
}

bool is_ip_interface(const std::string& device) {
  return ::if_nametoindex(device.c_str()) != 0;
}

}  // namespace troupe::ucx

namespace troupe {

Result<std::string> resolve_node(std::string_view host_and_port) {
  std::string_view host;
  uint16_t port = 0;
  if (!ucx::split(host_and_port, host, port)) {
    return invalid_argument("'" + std::string(host_and_port) +
                            "' is not of the form HOST:PORT, e.g. 10.0.0.7:7000");
  }
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int error = ::getaddrinfo(std::string(host).c_str(), nullptr, &hints, &list);
      error != 0) {
    return Status{StatusCode::kNotFound,
                  "host '" + std::string(host) + "' is not known: " + ::gai_strerror(error)};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(list, &::freeaddrinfo);
  sockaddr_in address{};
  std::memcpy(&address, list->ai_addr, sizeof address);
  char text[INET_ADDRSTRLEN] = {};
  inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(port);
}

}  // namespace troupe
