// What the machine is, from hwloc where the library is built with it (machine_hwloc.cpp), else from
// the operating system alone (machine_plain.cpp).
#pragma once

#include <string>
#include <vector>

#include <rondo/topology.hpp>

#include "topology/device_ring.hpp"

namespace rondo::detail {

// The NUMA node that this process is bound to; -1 if to none or to several.
int bound_numa_node();

std::string host_name();

// What the calling thread may run on: the hardware threads of each core, first to last. Of this machine's cores if
// it is bound to none.
struct UsableCores {
  std::vector<std::vector<int>> cores;
  bool bound = false;  // to less than the machine
};
UsableCores usable_cores();

// Asks the scheduler to let the calling thread run soon after it wakes, for short times, where others compute: a
// slice of its own (Linux 6.12). Otherwise a woken thread may wait until the slice of who computes ends, some
// milliseconds. What the kernel does not know stays as it is.
void take_short_slices();

// False, with errno, where that cannot be.
bool bind_this_thread(const std::vector<int>& hardware_threads);

// What lies between two PCI devices of this machine, each named as "0000:65:00.0": same_device, or
// pci_switch and beyond. Where that is not known, `unknown`.
DeviceLink pci_link(const std::string& a, const std::string& b);

}  // namespace rondo::detail
