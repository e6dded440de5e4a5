// Ranks of mpirun on several hosts: rank 1 is killed between two calls. The others print the error that they get.
#include <mpi.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  rondo::Communicator comm = rondo::from_mpi(MPI_COMM_WORLD);
  std::vector<float> values(1U << 18U);
  try {
    for (int call = 0;; ++call) {
      if (comm.rank() == 1 && call == 20) ::raise(SIGKILL);
      comm.all_reduce(values);
    }
  } catch (const rondo::PeerError& error) {
    const std::string line = "PeerError: " + std::string(error.what()) + "\n";
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
  } catch (const rondo::Error& error) {
    const std::string line = "another error: " + std::string(error.what()) + "\n";
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
  }
  ::_exit(1);
}
