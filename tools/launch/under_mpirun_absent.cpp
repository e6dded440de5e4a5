#include "under_mpirun.hpp"

namespace rondo::launch {

const bool kHasMpi = false;

bool srun_serves_mpi() { return false; }

int run_under_mpirun(const How& /*how*/, int* /*argc*/, char*** /*argv*/,
                     const std::function<int(Communicator)>& /*body*/) {
  return 2;  // never called
}

}  // namespace rondo::launch
