// A communicator with MPI edges that is destroyed after MPI_Finalize: the library logs a warning,
// and the program ends normally.

#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include <mpi.h>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

int main(int argc, char** argv) {
  static bool told = false;
  static std::optional<rondo::Communicator> comm;
  rondo::set_log_hook(
      [](rondo::LogLevel, std::string_view text) {
        told |= text.find("outlived MPI_Finalize") != std::string_view::npos;
      },
      rondo::LogLevel::warning);
  int level = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  comm = rondo::from_mpi(MPI_COMM_WORLD, {.carrier = rondo::CarrierChoice::mpi});
  std::vector<float> data(1000, 1.0F);
  comm->all_reduce(data);
  MPI_Finalize();
  comm.reset();
  return told && data == std::vector<float>(1000, 2.0F) ? EXIT_SUCCESS : EXIT_FAILURE;
}
