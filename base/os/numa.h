#pragma once

#include <cstdint>

#include "troupe/status.h"

namespace troupe {

// Memory nodes of the machine (NUMA), by hwloc; at least 1.
[[nodiscard]] Result<uint32_t> numa_nodes();

// Keeps all threads of the process, those to come included, on the cores of one node that the
// process may use, numbered from 0. Memory comes from where a thread first touches it, so that what
// it allocates from then on is that node's, as long as this has some. kInvalidArgument: there is no
// such node, or the process may use none of its cores; the message names the nodes.
[[nodiscard]] Status stay_on_numa_node(uint32_t node);

}  // namespace troupe
