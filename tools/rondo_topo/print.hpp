// What rondo-topo shows.
#pragma once

#include <rondo/communicator.hpp>

namespace rondo::topo {

struct Options {
  int ranks = 0;      // threads
  int processes = 0;  // forked; if both are 0: those of mpirun or rondo-launch
  bool on_devices = false;
  bool require_peer_access = false;
  CarrierChoice carrier = CarrierChoice::automatic;
};

// Reads the command line; exits the program after --help, --version or an error.
Options parse(int argc, char** argv);

// Collective: joins the ranks' devices if asked to. Rank 0 prints.
void show(Communicator comm, const Options& options);

}  // namespace rondo::topo
