// rondo-topo, built without MPI: ranks of one host.

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include "print.hpp"
#include "tools/launch/launch.hpp"

int main(int argc, char** argv) {
  const rondo::topo::Options options = rondo::topo::parse(argc, argv);
  rondo::CommunicatorOptions wanted;
  wanted.carrier = options.carrier;
  const auto body = [&](rondo::Communicator comm) {
    rondo::topo::show(std::move(comm), options);
    return 0;
  };
  try {
    if (options.processes > 0) {
      return rondo::launch::run_processes("rondo-topo", options.processes, body, wanted);
    }
    return rondo::launch::run_threads(std::max(options.ranks, 1), body, wanted);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-topo: %s\n", error.what());
    return 1;
  }
}
