#pragma once
// Node names as addresses, and the TCP sockets behind them. All sockets are non-blocking.

#include <cstdint>
#include <string>
#include <string_view>

#include "troupe/status.h"

namespace troupe::ucx {

// Owns a file descriptor.
class Socket final {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

struct HostPort {
  uint32_t ipv4 = 0;  // in the byte order of the machine
  uint16_t port = 0;
};

// "10.0.0.7:7000". kInvalidArgument: not a numeric IPv4 address, a colon and a port other than 0.
[[nodiscard]] Result<HostPort> parse_node(std::string_view node);

// Listens at host and port and tells the port, where 0 was asked for. kUnavailable: taken, or not
// this machine's address.
[[nodiscard]] Result<Socket> listen_at(std::string_view host, uint16_t port, uint16_t& port_out);
// The next connection that waits, if any, and who opened it. An empty socket: none.
[[nodiscard]] Socket accept_from(const Socket& listener, std::string& from);
// Begins to connect; the socket becomes writable when that has ended.
[[nodiscard]] Result<Socket> connect_to(const HostPort& to);
// How connecting ended.
[[nodiscard]] Status connect_status(const Socket& socket);

// The name of the interface that has this address. kInvalidArgument: none has.
[[nodiscard]] Result<std::string> interface_of(std::string_view host);
[[nodiscard]] bool is_ip_interface(const std::string& device);

}  // namespace troupe::ucx
