#include <unistd.h>

#include "topology/machine.hpp"

namespace rondo {
namespace detail {

int bound_numa_node() { return -1; }

DeviceLink pci_link(const std::string& a, const std::string& b) {
  return a == b ? DeviceLink::same_device : DeviceLink::unknown;
}

}  // namespace detail

Machine this_machine() {
  Machine machine;
  machine.host = detail::host_name();
  machine.cores = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  machine.source = "no hwloc";
  return machine;
}

}  // namespace rondo
