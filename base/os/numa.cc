#include "base/os/numa.h"

#include <hwloc.h>

#include <memory>
#include <string>
#include <type_traits>

namespace troupe {
namespace {

using Topology =
    std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)>;

Result<Topology> load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) == 0) {
    Topology owned(topology, &hwloc_topology_destroy);
    if (hwloc_topology_load(topology) == 0) return owned;
  }
  return Status{StatusCode::kInternal, "hwloc cannot read the machine's topology from /sys"};
}

uint32_t count_nodes(const Topology& topology) {
  const int nodes = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE);
  return nodes > 0 ? static_cast<uint32_t>(nodes) : 1;
}

}  // namespace

Result<uint32_t> numa_nodes() {
  TROUPE_ASSIGN_OR_RETURN(const Topology topology, load_topology());
  return count_nodes(topology);
}

Status stay_on_numa_node(uint32_t node) {
  TROUPE_ASSIGN_OR_RETURN(const Topology topology, load_topology());
  const uint32_t nodes = count_nodes(topology);
  const hwloc_obj_t found = hwloc_get_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node);
  if (found == nullptr) {
    const std::string there =
        nodes == 1 ? "1 memory node, number 0"
                   : std::to_string(nodes) + " memory nodes, 0 to " + std::to_string(nodes - 1);
    return invalid_argument("there is no memory node " + std::to_string(node) +
                            ": this machine has " + there);
  }
  // The topology holds only what the process may use, in its container or by taskset.
  if (hwloc_bitmap_iszero(found->cpuset) != 0) {
    return invalid_argument("the process may use no core of memory node " + std::to_string(node) +
                            "; take another, or let it have more cores");
  }
  if (hwloc_set_cpubind(topology.get(), found->cpuset, HWLOC_CPUBIND_PROCESS) == 0)
    return ok_status();
  return {StatusCode::kInternal,
          "the system does not let the process stay on the cores of memory "
          "node " +
              std::to_string(node)};
}

}  // namespace troupe
