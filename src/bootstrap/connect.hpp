// Connecting to rank 0.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/file_descriptor.hpp"
#include "bootstrap/addresses.hpp"
#include "bootstrap/meeting_point.hpp"

namespace rondo::detail {

// A try to connect: the socket, or why there is none yet.
struct Attempt {
  FileDescriptor socket = FileDescriptor();
  std::string why_not = {};
};

// Tries once. `network` has nothing to do before and after, so that one may serve for many tries.
// Throws TransportError if trying again is useless.
Attempt connect_to(asio::io_context& network, const Target& target, Clock::time_point deadline);

// Tries each address once, for a few seconds and until the deadline at most. An address that does
// not answer holds up the next one for a moment only.
Attempt connect_to_any(asio::io_context& network, const std::vector<Address>& addresses,
                       Clock::time_point deadline);

}  // namespace rondo::detail
