// What the machine is, from hwloc where the library is built with it (machine_hwloc.cpp), else from
// the operating system alone (machine_plain.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/topology.hpp>

#include "topology/device_ring.hpp"

namespace rondo::detail {

// The NUMA node that this process is bound to; -1 if to none or to several.
int bound_numa_node();

std::string host_name();

// Changes with every start of the machine, so that equal host names on two machines stay apart;
// where the system does not show it (without /proc), that of the installed system. Throws
// TransportError where this process has no descriptor left to read it.
std::string machine_boot_id();
// The same for two processes if they run on one host (RankPlace::host_id).
std::uint64_t host_id(std::string_view name, std::string_view boot_id);
// Returns the id of this process's host; a random number if the process cannot find out which host
// it is.
std::uint64_t this_host_id();

// The cores that the calling thread may run on, each with its hardware threads, first to last. All
// cores of the machine if the thread is not bound.
struct UsableCores {
  std::vector<std::vector<int>> cores;
  bool bound = false;  // to less than the machine
};
UsableCores usable_cores();

// Returns false and sets errno if the thread cannot be bound.
bool bind_this_thread(const std::vector<int>& hardware_threads);

// What lies between two PCI devices of this machine, each named as "0000:65:00.0": same_device, or
// pci_switch and beyond. Where that is not known, `unknown`.
DeviceLink pci_link(const std::string& a, const std::string& b);

}  // namespace rondo::detail
