#include <hwloc.h>

#include <cerrno>
#include <utility>

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
    if (with_io) hwloc_topology_set_io_types_filter(topology_, HWLOC_TYPE_FILTER_KEEP_ALL);
    // Only /sys is needed, so these components are off. "pci" leaks memory through libpciaccess.
    // "gl" connects to X servers, and may first ask a name server for "localhost": if none answers,
    // this rank would wait for minutes. The others start a GPU's runtime.
    for (const char* component : {"pci", "gl", "opencl", "cuda", "nvml", "rsmi", "levelzero"}) {
      hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, component);
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

// The cores, caches and NUMA nodes, null when hwloc cannot load them. Loaded once in a process,
// which takes longer than all else that a rank does when it joins a communicator.
hwloc_topology_t without_io() {
  static const LoadedTopology loaded;
  return loaded.get();
}

int count(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const int objects = hwloc_get_nbobjs_by_type(topology, type);
  return objects < 0 ? 0 : objects;
}

std::uint64_t cache_bytes(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const hwloc_obj_t cache = hwloc_get_obj_by_type(topology, type, 0);
  return cache == nullptr ? 0 : cache->attr->cache.size;
}

// The link between two devices, from the innermost object that contains both.
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
  const hwloc_topology_t topology = without_io();
  if (topology == nullptr) return -1;
  const hwloc_cpuset_t cpus = hwloc_bitmap_alloc();
  const hwloc_nodeset_t nodes = hwloc_bitmap_alloc();
  int node = -1;
  if (hwloc_get_cpubind(topology, cpus, HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_cpuset_to_nodeset(topology, cpus, nodes);
    if (hwloc_bitmap_weight(nodes) == 1) node = hwloc_bitmap_first(nodes);
  }
  hwloc_bitmap_free(nodes);
  hwloc_bitmap_free(cpus);
  return node;
}

UsableCores usable_cores() {
  UsableCores usable;
  const hwloc_topology_t topology = without_io();
  if (topology == nullptr) return usable;
  const hwloc_cpuset_t mine = hwloc_bitmap_alloc();
  if (hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_THREAD) == 0) {
    usable.bound = hwloc_bitmap_weight(mine) < count(topology, HWLOC_OBJ_PU);
    for (int number = 0; number < count(topology, HWLOC_OBJ_CORE); ++number) {
      const hwloc_obj_t core =
          hwloc_get_obj_by_type(topology, HWLOC_OBJ_CORE, static_cast<unsigned>(number));
      std::vector<int> threads;
      for (int thread = hwloc_bitmap_next(core->cpuset, -1); thread != -1;
           thread = hwloc_bitmap_next(core->cpuset, thread)) {
        if (hwloc_bitmap_isset(mine, static_cast<unsigned>(thread)) != 0) threads.push_back(thread);
      }
      if (!threads.empty()) usable.cores.push_back(std::move(threads));
    }
  }
  hwloc_bitmap_free(mine);
  return usable;
}

bool bind_this_thread(const std::vector<int>& hardware_threads) {
  const hwloc_topology_t topology = without_io();
  if (topology == nullptr) return false;
  const hwloc_cpuset_t wanted = hwloc_bitmap_alloc();
  for (const int thread : hardware_threads) {
    hwloc_bitmap_set(wanted, static_cast<unsigned>(thread));
  }
  const bool bound =
      hwloc_bitmap_isincluded(wanted, hwloc_topology_get_allowed_cpuset(topology)) != 0 &&
      hwloc_set_cpubind(topology, wanted, HWLOC_CPUBIND_THREAD) == 0;
  if (!bound && errno == 0) errno = EINVAL;
  hwloc_bitmap_free(wanted);
  return bound;
}

}  // namespace detail

Machine this_machine() {
  Machine machine;
  machine.host = detail::host_name();
  const hwloc_topology_t topology = detail::without_io();
  if (topology == nullptr) {
    machine.source = "hwloc could not load a topology";
    return machine;
  }
  machine.cores = detail::count(topology, HWLOC_OBJ_PU);
  machine.numa_nodes = detail::count(topology, HWLOC_OBJ_NUMANODE);
  machine.l2_bytes = detail::cache_bytes(topology, HWLOC_OBJ_L2CACHE);
  machine.l3_bytes = detail::cache_bytes(topology, HWLOC_OBJ_L3CACHE);
  const unsigned version = hwloc_get_api_version();
  machine.source =
      fmt::format("hwloc API {}.{}.{}", version >> 16U, (version >> 8U) & 0xFFU, version & 0xFFU);
  return machine;
}

}  // namespace rondo
