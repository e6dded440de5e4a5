// What an MPI program loads and unloads that has Rondo in it.
#include <vector>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

// All ranks join, add by MPI's messages and leave; 0 if the sum is right.
extern "C" int add_by_mpi() {
  try {
    rondo::Communicator comm =
        rondo::from_mpi(MPI_COMM_WORLD, {.carrier = rondo::CarrierChoice::mpi});
    const int size = comm.size();
    std::vector<int> values(1000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i) + comm.rank();
    comm.all_reduce(values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != size * static_cast<int>(i) + size * (size - 1) / 2) return 1;
    }
    return 0;
  } catch (const rondo::Error&) {
    return 2;
  }
}
