#include <sched.h>
#include <unistd.h>

#include "topology/machine.hpp"

namespace rondo {
namespace detail {

int bound_numa_node() { return -1; }

DeviceLink pci_link(const std::string& a, const std::string& b) {
  return a == b ? DeviceLink::same_device : DeviceLink::unknown;
}

UsableCores usable_cores() {
  UsableCores usable;
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) return usable;
  for (int thread = 0; thread < CPU_SETSIZE; ++thread) {
    if (CPU_ISSET(static_cast<unsigned>(thread), &set)) usable.cores.push_back({thread});
  }
  usable.bound = static_cast<long>(usable.cores.size()) < ::sysconf(_SC_NPROCESSORS_ONLN);
  return usable;
}

bool bind_this_thread(const std::vector<int>& hardware_threads) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int thread : hardware_threads) {
    if (thread < CPU_SETSIZE) CPU_SET(static_cast<unsigned>(thread), &set);
  }
  return ::sched_setaffinity(0, sizeof(set), &set) == 0;
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
