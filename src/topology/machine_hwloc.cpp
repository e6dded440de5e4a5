#include <hwloc.h>

#include <fmt/format.h>

#include "topology/machine.hpp"

namespace rondo {
namespace detail {
namespace {

// Owns a loaded topology; null when hwloc cannot load one.
class LoadedTopology {
 public:
  LoadedTopology() {
    if (hwloc_topology_init(&topology_) != 0) return;
    loaded_ = hwloc_topology_load(topology_) == 0;
  }
  LoadedTopology(const LoadedTopology&) = delete;
  LoadedTopology& operator=(const LoadedTopology&) = delete;
  ~LoadedTopology() {
    if (topology_ != nullptr) hwloc_topology_destroy(topology_);
  }
  [[nodiscard]] hwloc_topology_t get() const { return loaded_ ? topology_ : nullptr; }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

int count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int objects = hwloc_get_nbobjs_by_type(topology, type);
  return objects < 0 ? 0 : objects;
}

std::uint64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  return cache == nullptr ? 0 : cache->attr->cache.size;
}

}  // namespace

int bound_numa_node() {
  const LoadedTopology loaded;
  if (loaded.get() == nullptr) return -1;
  const hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
  const hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
  int node = -1;
  if (hwloc_get_cpubind(loaded.get(), cpus, HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_cpuset_to_nodeset(loaded.get(), cpus, nodes);
    if (hwloc_bitmap_weight(nodes) == 1) node = hwloc_bitmap_first(nodes);
  }
  hwloc_bitmap_free(nodes);
  hwloc_bitmap_free(cpus);
  return node;
}

}  // namespace detail

Machine this_machine() {
  Machine machine;
  machine.host = detail::host_name();
  const detail::LoadedTopology loaded;
  if (loaded.get() == nullptr) {
    machine.source = "hwloc could not load a topology";
    return machine;
  }
  machine.cores = detail::count(loaded.get(), HWLOC_OBJ_PU);
  machine.numa_nodes = detail::count(loaded.get(), HWLOC_OBJ_NUMANODE);
  machine.l2_bytes = detail::cache_bytes(loaded.get(), HWLOC_OBJ_L2CACHE);
  machine.l3_bytes = detail::cache_bytes(loaded.get(), HWLOC_OBJ_L3CACHE);
  const unsigned version = hwloc_get_api_version();
  machine.source =
      fmt::format("hwloc API {}.{}.{}", version >> 16U, (version >> 8U) & 0xFFU, version & 0xFFU);
  return machine;
}

}  // namespace rondo
