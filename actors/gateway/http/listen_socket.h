#pragma once
// A bound, listening TCP socket, with errors that say what to do.

#include <kj/io.h>

#include <cstdint>
#include <string>

#include "troupe/status.h"

namespace troupe {

struct ListenSocket {
  kj::AutoCloseFd fd;
  uint16_t port = 0;  // as bound
};

// Binds the first address that `host` stands for. Blocks on the resolver when `host` is a name.
// Port 0 picks a free one. kUnavailable: the port is taken; kInvalidArgument: the host is unknown
// or not of this machine, or the port needs privileges; kInternal: anything else, with the system's
// reason.
[[nodiscard]] Result<ListenSocket> open_listen_socket(const std::string& host, uint16_t port);

}  // namespace troupe
