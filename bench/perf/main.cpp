#include <algorithm>
#include <utility>

#include "bench/perf/peers.hpp"
#include "bench/perf/run.hpp"
#include "bench/perf/tune.hpp"
#include "tools/launch/launch.hpp"
#include "tools/launch/write_file.hpp"

int main(int argc, char** argv) {
  rondo::launch::report_full_files();
  namespace perf = rondo::perf;
  const perf::Options options =
      perf::parse(argc, argv, perf::has_mpi_peer(), perf::has_gloo_peer());
  const bool under_mpirun = rondo::launch::starts_mpi(options.ranks, options.processes);
  const auto asked_for = [&](const char* algo) {
    return std::find(options.algos.begin(), options.algos.end(), algo) != options.algos.end();
  };
  return rondo::launch::launch(
      {"rondo-perf", options.ranks, options.processes, options.on_devices, options.host}, &argc,
      &argv, [&](rondo::Communicator comm) {
        if (!options.tune.empty()) {
          perf::tune(comm, options);
          return 0;
        }
        perf::Peers peers;
        if (under_mpirun && asked_for("mpi")) peers["mpi"] = perf::mpi_peer();
        if (asked_for("gloo")) peers["gloo"] = perf::gloo_peer(comm);
        if (asked_for("sockets")) peers["sockets"] = perf::sockets_peer(comm);
        return perf::run(std::move(comm), options, peers) == 0 ? 0 : 1;
      });
}
