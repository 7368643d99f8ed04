#include "actors/gateway/http/listen_socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

namespace troupe {

namespace {

constexpr int kBacklog = 1024;

struct AddressListDeleter {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, AddressListDeleter>;

Status bind_error(const std::string& host, uint16_t port, int error) {
  const std::string where = host + " port " + std::to_string(port);
  switch (error) {
    case EADDRINUSE:
      return {StatusCode::kUnavailable,
              "cannot listen on " + where +
                  ": another program uses that port; stop it, or choose "
                  "another with --port",
              "port"};
    case EADDRNOTAVAIL:
      return {StatusCode::kInvalidArgument,
              "cannot listen on " + where +
                  ": this machine has no such address; use 127.0.0.1 for "
                  "local clients or 0.0.0.0 for all",
              "host"};
    case EACCES:
      return {StatusCode::kInvalidArgument,
              "cannot listen on " + where +
                  ": not permitted; ports below 1024 need privileges, "
                  "choose a higher one with --port",
              "port"};
    default:
      return {StatusCode::kInternal, "cannot listen on " + where + ": " + std::strerror(error)};
  }
}

Result<uint16_t> bound_port(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return Status(StatusCode::kInternal, std::string("getsockname: ") + std::strerror(errno));
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

Result<ListenSocket> open_listen_socket(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (failure != 0) {
    return invalid_argument("cannot listen on host \"" + host + "\": " + gai_strerror(failure) +
                                "; give an address such as 127.0.0.1 with --host",
                            "host");
  }
  const AddressList list(found);
  kj::AutoCloseFd fd(socket(list->ai_family, list->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return bind_error(host, port, errno);
  // A restart need not wait for the last run's connections to leave TIME_WAIT.
  const int on = 1;
  if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, kBacklog) != 0) {
    return bind_error(host, port, errno);
  }
  TROUPE_ASSIGN_OR_RETURN(const uint16_t bound, bound_port(fd));
  return ListenSocket{kj::mv(fd), bound};
}

}  // namespace troupe
