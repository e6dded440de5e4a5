#include <mpi.h>

#include <cstdlib>
#include <exception>
#include <rondo/mpi.hpp>

#include "under_mpirun.hpp"

namespace rondo::launch {

const bool kHasMpi = true;

bool srun_serves_mpi() {
#ifdef OPEN_MPI
  return std::getenv("PMIX_RANK") != nullptr;
#else
  return std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_RANK") != nullptr;
#endif
}

int run_under_mpirun(const How& how, int* argc, char*** argv,
                     const std::function<int(Communicator)>& body) {
  int level = MPI_THREAD_SINGLE;
  // Unless threads_use_mpi is set, only the main thread calls MPI.
  MPI_Init_thread(argc, argv, how.threads_use_mpi ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED,
                  &level);
  int code = 0;
  try {
    code = body(from_mpi(MPI_COMM_WORLD, how.options));
  } catch (const std::exception& error) {
    report(how.program, error.what());
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return code;
}

}  // namespace rondo::launch
