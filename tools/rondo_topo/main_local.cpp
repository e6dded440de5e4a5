// rondo-topo, built without MPI: groups of ranks in one process.

#include <algorithm>
#include <cstdio>
#include <exception>

#include "print.hpp"

int main(int argc, char** argv) {
  const rondo::topo::Options options = rondo::topo::parse(argc, argv);
  rondo::CommunicatorOptions wanted;
  wanted.carrier = options.carrier;
  try {
    rondo::topo::print(rondo::local_group(std::max(options.ranks, 1), wanted).front());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rondo-topo: %s\n", error.what());
    return 1;
  }
}
