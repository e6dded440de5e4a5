// The functions of MPI that Rondo takes over, under the names that programs call.
#include "adapters/mpi/functions.hpp"

using namespace rondo::mpi_programs;  // NOLINT(google-build-using-namespace): of functions of MPI

extern "C" {

RONDO_OF_MPI int MPI_Barrier(MPI_Comm comm) {
  return barrier(comm, [&] { return PMPI_Barrier(comm); });
}

RONDO_OF_MPI int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return broadcast(data, count, type, root, comm,
                   [&] { return PMPI_Bcast(data, count, type, root, comm); });
}

RONDO_OF_MPI int MPI_Allgather(const void* in, int in_count, MPI_Datatype in_type, void* out,
                               int out_count, MPI_Datatype out_type, MPI_Comm comm) {
  return all_gather(in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Allgather(in, in_count, in_type, out, out_count, out_type, comm);
  });
}

RONDO_OF_MPI int MPI_Allgatherv(const void* in, int in_count, MPI_Datatype in_type, void* out,
                                const int* out_counts, const int* places, MPI_Datatype out_type,
                                MPI_Comm comm) {
  return all_gather_v(
      in, in_count, in_type, out, Counts(out_counts), Counts(places), out_type, comm, [&] {
        return PMPI_Allgatherv(in, in_count, in_type, out, out_counts, places, out_type, comm);
      });
}

RONDO_OF_MPI int MPI_Gather(const void* in, int in_count, MPI_Datatype in_type, void* out,
                            int out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
  return gather(in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Gather(in, in_count, in_type, out, out_count, out_type, root, comm);
  });
}

RONDO_OF_MPI int MPI_Gatherv(const void* in, int in_count, MPI_Datatype in_type, void* out,
                             const int* out_counts, const int* places, MPI_Datatype out_type,
                             int root, MPI_Comm comm) {
  return gather_v(
      in, in_count, in_type, out, Counts(out_counts), Counts(places), out_type, root, comm, [&] {
        return PMPI_Gatherv(in, in_count, in_type, out, out_counts, places, out_type, root, comm);
      });
}

RONDO_OF_MPI int MPI_Scatter(const void* in, int in_count, MPI_Datatype in_type, void* out,
                             int out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
  return scatter(in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Scatter(in, in_count, in_type, out, out_count, out_type, root, comm);
  });
}

RONDO_OF_MPI int MPI_Scatterv(const void* in, const int* in_counts, const int* places,
                              MPI_Datatype in_type, void* out, int out_count, MPI_Datatype out_type,
                              int root, MPI_Comm comm) {
  return scatter_v(
      in, Counts(in_counts), Counts(places), in_type, out, out_count, out_type, root, comm, [&] {
        return PMPI_Scatterv(in, in_counts, places, in_type, out, out_count, out_type, root, comm);
      });
}

RONDO_OF_MPI int MPI_Alltoall(const void* in, int in_count, MPI_Datatype in_type, void* out,
                              int out_count, MPI_Datatype out_type, MPI_Comm comm) {
  return all_to_all(in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Alltoall(in, in_count, in_type, out, out_count, out_type, comm);
  });
}

RONDO_OF_MPI int MPI_Alltoallv(const void* in, const int* in_counts, const int* in_places,
                               MPI_Datatype in_type, void* out, const int* out_counts,
                               const int* out_places, MPI_Datatype out_type, MPI_Comm comm) {
  return all_to_all_v(in, Counts(in_counts), Counts(in_places), in_type, out, Counts(out_counts),
                      Counts(out_places), out_type, comm, [&] {
                        return PMPI_Alltoallv(in, in_counts, in_places, in_type, out, out_counts,
                                              out_places, out_type, comm);
                      });
}

RONDO_OF_MPI int MPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                               MPI_Comm comm) {
  return all_reduce(in, out, count, type, op, comm,
                    [&] { return PMPI_Allreduce(in, out, count, type, op, comm); });
}

RONDO_OF_MPI int MPI_Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                                MPI_Comm comm, MPI_Request* request) {
  return iall_reduce(in, out, count, type, op, comm, request,
                     [&] { return PMPI_Iallreduce(in, out, count, type, op, comm, request); });
}

RONDO_OF_MPI int MPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op,
                            int root, MPI_Comm comm) {
  return reduce(in, out, count, type, op, root, comm,
                [&] { return PMPI_Reduce(in, out, count, type, op, root, comm); });
}

RONDO_OF_MPI int MPI_Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type,
                                    MPI_Op op, MPI_Comm comm) {
  return reduce_scatter(in, out, Counts(counts), type, op, comm,
                        [&] { return PMPI_Reduce_scatter(in, out, counts, type, op, comm); });
}

RONDO_OF_MPI int MPI_Reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type,
                                          MPI_Op op, MPI_Comm comm) {
  return reduce_scatter_block(in, out, count, type, op, comm, [&] {
    return PMPI_Reduce_scatter_block(in, out, count, type, op, comm);
  });
}

}  // extern "C"
