// What tests of reachable memory have in common.
#pragma once

#include <memory_resource>
#include <span>
#include <vector>

#include <rondo/rondo.hpp>

#include "tests/support/forked.hpp"

namespace rondo::test {

using Floats = std::pmr::vector<float>;

inline Communicator join(const ForkedRank& me, const CommunicatorOptions& options = {}) {
  return from_socket(me.socket, me.rank, me.size, options);
}

inline Algorithm algorithm_for(Communicator& comm, std::span<float> data) {
  return comm.algorithm_for({.collective = Collective::all_reduce,
                             .in = data.data(),
                             .out = data.data(),
                             .count = data.size()});
}

inline std::vector<int> zeros(int ranks) {
  return std::vector<int>(static_cast<std::size_t>(ranks), 0);
}

}  // namespace rondo::test
