// Whether all ranks train alike.
#pragma once

#include <rondo/communicator.hpp>
#include <string>

#include "samples.hpp"

namespace lenet {

// Throw rondo::UsageError on all ranks where the ranks do not have the same settings (one in each
// line), or the same samples; it names what differs, and the ranks. Collective.
void require_equal_settings(rondo::Communicator& ranks, const std::string& settings);
void require_equal_data(rondo::Communicator& ranks, const Dataset& data);

}  // namespace lenet
