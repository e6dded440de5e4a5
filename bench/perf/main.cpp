#include <utility>

#include "bench/perf/peers.hpp"
#include "bench/perf/run.hpp"
#include "tools/launch/launch.hpp"

int main(int argc, char** argv) {
  const rondo::perf::Options options = rondo::perf::parse(argc, argv, rondo::perf::has_mpi_peer());
  const bool under_mpirun = options.ranks + options.processes == 0;
  return rondo::launch::launch(
      {"rondo-perf", options.ranks, options.processes, options.on_devices, options.host}, &argc,
      &argv, [&](rondo::Communicator comm) {
        const rondo::perf::Peer mpi = under_mpirun ? rondo::perf::mpi_peer() : rondo::perf::Peer{};
        return rondo::perf::run(std::move(comm), options, mpi) == 0 ? 0 : 1;
      });
}
