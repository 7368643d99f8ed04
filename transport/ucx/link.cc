#include "transport/ucx/link.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "transport/session/limits.h"

namespace troupe::ucx {
namespace {

// Reads of one turn; what is left comes with the next.
constexpr int kReadsMax = 16;

}  // namespace

Status Link::send(const std::string& encoded) {
  if (out_.size() > 2 * limits::kFrameBytesMax) {
    return {StatusCode::kUnavailable, "it does not read what it is sent"};
  }
  out_ += encoded;
  return connecting_ ? ok_status() : flush();
}

Status Link::flush() {
  while (!out_.empty()) {
    const ssize_t sent = ::send(socket_.fd(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return {StatusCode::kUnavailable, std::generic_category().message(errno)};
    out_.erase(0, static_cast<size_t>(sent));
  }
  return ok_status();
}

Status Link::read(std::vector<Frame>& frames) {
  std::array<char, 4096> buffer;
  for (int i = 0; i < kReadsMax; ++i) {
    const ssize_t got = ::recv(socket_.fd(), buffer.data(), buffer.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ok_status();
    if (got < 0) return {StatusCode::kUnavailable, std::generic_category().message(errno)};
    if (got == 0) return {StatusCode::kUnavailable, "it closed the connection"};
    if (ending_) continue;
    reader_.add({buffer.data(), static_cast<size_t>(got)});
    while (true) {
      auto frame = reader_.next();
      if (!frame.ok()) return frame.status();
      if (!frame.value()) break;
      frames.push_back(std::move(*frame.value()));
    }
  }
  return ok_status();
}

void Link::end_after_reply() {
  ending_ = true;
  static_cast<void>(flush());
  ::shutdown(socket_.fd(), SHUT_WR);
}

}  // namespace troupe::ucx
