// Describes what a pump carries for its rank.
#pragma once

#include <cstdint>
#include <vector>

#include "base/algorithm_set.hpp"
#include "carrier/abort_board.hpp"
#include "fifo/fifo.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::detail {

// Holds, for each FIFO, the end that the engine does not use; and the ranks that are told when the
// communicator ends.
struct PumpEdges {
  struct Out {
    int peer = 0;
    AlgorithmSet algorithms;
    int channel = 0;
    RecvEnd published;                // slots that the engine has filled
    AlgorithmSet between_hosts = {};  // by which `hierarchical` goes along it
  };
  struct In {
    int peer = 0;
    AlgorithmSet algorithms;
    int channel = 0;
    SendEnd free;  // slots that the engine will read
    AlgorithmSet between_hosts = {};
  };
  std::vector<Out> out;
  std::vector<In> in;
  std::vector<Mapping> fifos;        // the memory of these FIFOs; the pump owns it from now on
  std::vector<int> ranks_elsewhere;  // which do not share this rank's abort board
  AbortBoard* board = nullptr;
  // Distinguishes messages of this communicator from those of an earlier one; the same on all its
  // ranks.
  std::uint64_t session = 0;
};

}  // namespace rondo::detail
