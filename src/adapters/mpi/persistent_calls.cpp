// What MPI 4 has for persistent calls, under the names that programs call.
#include "adapters/mpi/functions.hpp"
#include "adapters/mpi/persistent.hpp"

using namespace rondo::mpi_programs;  // NOLINT(google-build-using-namespace): of functions of MPI

extern "C" {

RONDO_OF_MPI int MPI_Allreduce_init(const void* in, void* out, int count, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm, MPI_Info info, MPI_Request* request) {
  return all_reduce_init(in, out, count, type, op, comm, request, [&] {
    return PMPI_Allreduce_init(in, out, count, type, op, comm, info, request);
  });
}

RONDO_OF_MPI int MPI_Start(MPI_Request* request) {
  return start_request(request, [&] { return PMPI_Start(request); });
}

RONDO_OF_MPI int MPI_Startall(int count, MPI_Request* requests) {
  for (int i = 0; i < count; ++i) {
    const int code = MPI_Start(requests + i);
    if (code != MPI_SUCCESS) return code;
  }
  return count < 0 ? PMPI_Startall(count, requests) : MPI_SUCCESS;
}

RONDO_OF_MPI int MPI_Request_free(MPI_Request* request) {
  return free_request(request, [&] { return PMPI_Request_free(request); });
}

}  // extern "C"
