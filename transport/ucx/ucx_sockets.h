#pragma once
// The TCP sockets that UCX has opened in this process, found from outside: it names none of them.

#include <cstdint>
#include <set>

namespace troupe::ucx {

// Ports at which this process listens.
[[nodiscard]] std::set<uint16_t> listening_ports();

// Lets the system give up, after `milliseconds` without progress, on what UCX has on its way to
// `ipv4`, so that UCX learns of a lost peer by an error of its own: UCX 1.13 may crash when an
// endpoint is closed by force while data are under way. Harmless to connections with other
// processes of that host, as long as they make progress. `ucx_ports`: at which UCX listens; `ours`:
// sockets that are not UCX's.
void give_up_soon(uint32_t ipv4, int milliseconds, const std::set<uint16_t>& ucx_ports,
                  const std::set<int>& ours);

}  // namespace troupe::ucx
