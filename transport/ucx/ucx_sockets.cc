#include "transport/ucx/ucx_sockets.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <charconv>
#include <filesystem>
#include <string>
#include <vector>

namespace troupe::ucx {
namespace {

struct TcpSocket {
  int fd = -1;
  bool listens = false;
  uint16_t local_port = 0;
  uint32_t peer = 0;  // 0: not connected
};

std::vector<TcpSocket> tcp_sockets() {
  std::vector<TcpSocket> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const std::string name = entry.path().filename();
    TcpSocket socket;
    if (std::from_chars(name.data(), name.data() + name.size(), socket.fd).ec != std::errc{}) {
      continue;
    }
    int protocol = 0, listens = 0;
    socklen_t size = sizeof protocol;
    if (::getsockopt(socket.fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0) continue;
    sockaddr_in address{};
    size = sizeof address;
    auto* as_sockaddr = reinterpret_cast<sockaddr*>(&address);
    if (protocol != IPPROTO_TCP || ::getsockname(socket.fd, as_sockaddr, &size) != 0) continue;
    if (address.sin_family != AF_INET) continue;
    socket.local_port = ntohs(address.sin_port);
    size = sizeof listens;
    socket.listens =
        ::getsockopt(socket.fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
    size = sizeof address;
    if (::getpeername(socket.fd, as_sockaddr, &size) == 0 && address.sin_family == AF_INET) {
      socket.peer = ntohl(address.sin_addr.s_addr);
    }
    found.push_back(socket);
  }
  return found;
}

}  // namespace

std::set<uint16_t> listening_ports() {
  std::set<uint16_t> ports;
  for (const TcpSocket& socket : tcp_sockets()) {
    if (socket.listens) ports.insert(socket.local_port);
  }
  return ports;
}

void give_up_soon(uint32_t ipv4, int milliseconds, const std::set<uint16_t>& ucx_ports,
                  const std::set<int>& ours) {
  const std::vector<TcpSocket> sockets = tcp_sockets();
  std::set<uint16_t> served;  // by others in this process: HTTP, RPC
  for (const TcpSocket& socket : sockets) {
    if (socket.listens && !ucx_ports.contains(socket.local_port)) served.insert(socket.local_port);
  }
  for (const TcpSocket& socket : sockets) {
    if (socket.peer != ipv4 || ours.contains(socket.fd)) continue;
    if (served.contains(socket.local_port)) continue;
    static_cast<void>(
        ::setsockopt(socket.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds));
  }
}

}  // namespace troupe::ucx
