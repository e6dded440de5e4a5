// What a kernel's record of its failure says.
#pragma once

#include <string>

#include "group/wiring.hpp"

namespace rondo::detail::gpu {

// A rank's first record that is no mere echo of another's failure; null if there is none.
const Failure* failure_of(const DeviceWiring& wiring, int rank);

std::string text_of(const DeviceWiring& wiring, int rank, const Failure& failure);

}  // namespace rondo::detail::gpu
