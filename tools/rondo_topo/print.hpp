#pragma once

#include <rondo/communicator.hpp>

namespace rondo::topo {

// What hwloc sees here, where the ranks are, the ring's order, and each edge's carrier with its
// reason.
void print(const Communicator& comm);

struct Options {
  int ranks = 0;  // 0: the processes of mpirun
  CarrierChoice carrier = CarrierChoice::automatic;
};

// Reads the command line; exits the program where it asks for help or is wrong.
Options parse(int argc, char** argv);

}  // namespace rondo::topo
