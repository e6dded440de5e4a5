#include <hwloc.h>

#include <fmt/format.h>

#include "topology/machine.hpp"

namespace rondo {
namespace detail {
namespace {

// Owns a loaded topology; null when hwloc cannot load one.
class LoadedTopology {
 public:
  explicit LoadedTopology(bool with_io = false) {
    if (hwloc_topology_init(&topology_) != 0) return;
    if (with_io) {
      hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL);
      // What /sys says will do: libpciaccess, which this component uses, leaks.
      hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
    }
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

// From the innermost object that holds both.
DeviceLink link_through(hwloc_obj_t common) {
  if (common->type == HWLOC_OBJ_BRIDGE) {
    return common->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST ? DeviceLink::host_bridge
                                                                       : DeviceLink::pci_switch;
  }
  return common->type == HWLOC_OBJ_MACHINE ? DeviceLink::machine : DeviceLink::package;
}

}  // namespace

DeviceLink pci_link(const std::string& a, const std::string& b) {
  if (a == b) return DeviceLink::same_device;
  const LoadedTopology loaded(true);
  if (loaded.get() == nullptr) return DeviceLink::unknown;
  const hwloc_obj_t first = hwloc_get_pcidev_by_busidstring(loaded.get(), a.c_str());
  const hwloc_obj_t second = hwloc_get_pcidev_by_busidstring(loaded.get(), b.c_str());
  if (first == nullptr || second == nullptr) return DeviceLink::unknown;
  for (hwloc_obj_t outer = first->parent; outer != nullptr; outer = outer->parent) {
    for (hwloc_obj_t other = second->parent; other != nullptr; other = other->parent) {
      if (other == outer) return link_through(outer);
    }
  }
  return DeviceLink::unknown;
}

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
