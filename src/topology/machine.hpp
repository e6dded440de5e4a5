// What the machine is, from hwloc where the library is built with it (machine_hwloc.cpp), else from
// the operating system alone (machine_plain.cpp).
#pragma once

#include <string>

#include <rondo/topology.hpp>

namespace rondo::detail {

// The NUMA node that this process is bound to; -1 if to none or to several.
int bound_numa_node();

std::string host_name();

}  // namespace rondo::detail
