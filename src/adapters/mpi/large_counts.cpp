// The functions of MPI that Rondo takes over, with counts that are MPI_Count.
#include "adapters/mpi/functions.hpp"

using namespace rondo::mpi_programs;  // NOLINT(google-build-using-namespace): of functions of MPI

extern "C" {

RONDO_OF_MPI int MPI_Bcast_c(void* data, MPI_Count count, MPI_Datatype type, int root,
                             MPI_Comm comm) {
  return broadcast(data, count, type, root, comm,
                   [&] { return PMPI_Bcast_c(data, count, type, root, comm); });
}

RONDO_OF_MPI int MPI_Allgather_c(const void* in, MPI_Count in_count, MPI_Datatype in_type,
                                 void* out, MPI_Count out_count, MPI_Datatype out_type,
                                 MPI_Comm comm) {
  return all_gather(in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Allgather_c(in, in_count, in_type, out, out_count, out_type, comm);
  });
}

RONDO_OF_MPI int MPI_Allgatherv_c(const void* in, MPI_Count in_count, MPI_Datatype in_type,
                                  void* out, const MPI_Count* out_counts, const MPI_Aint* places,
                                  MPI_Datatype out_type, MPI_Comm comm) {
  return all_gather_v(
      in, in_count, in_type, out, Counts(out_counts), Counts(places), out_type, comm, [&] {
        return PMPI_Allgatherv_c(in, in_count, in_type, out, out_counts, places, out_type, comm);
      });
}

RONDO_OF_MPI int MPI_Gather_c(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                              MPI_Count out_count, MPI_Datatype out_type, int root, MPI_Comm comm) {
  return gather(in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Gather_c(in, in_count, in_type, out, out_count, out_type, root, comm);
  });
}

RONDO_OF_MPI int MPI_Gatherv_c(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                               const MPI_Count* out_counts, const MPI_Aint* places,
                               MPI_Datatype out_type, int root, MPI_Comm comm) {
  return gather_v(
      in, in_count, in_type, out, Counts(out_counts), Counts(places), out_type, root, comm, [&] {
        return PMPI_Gatherv_c(in, in_count, in_type, out, out_counts, places, out_type, root, comm);
      });
}

RONDO_OF_MPI int MPI_Scatter_c(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                               MPI_Count out_count, MPI_Datatype out_type, int root,
                               MPI_Comm comm) {
  return scatter(in, in_count, in_type, out, out_count, out_type, root, comm, [&] {
    return PMPI_Scatter_c(in, in_count, in_type, out, out_count, out_type, root, comm);
  });
}

RONDO_OF_MPI int MPI_Scatterv_c(const void* in, const MPI_Count* in_counts, const MPI_Aint* places,
                                MPI_Datatype in_type, void* out, MPI_Count out_count,
                                MPI_Datatype out_type, int root, MPI_Comm comm) {
  return scatter_v(in, Counts(in_counts), Counts(places), in_type, out, out_count, out_type, root,
                   comm, [&] {
                     return PMPI_Scatterv_c(in, in_counts, places, in_type, out, out_count,
                                            out_type, root, comm);
                   });
}

RONDO_OF_MPI int MPI_Alltoall_c(const void* in, MPI_Count in_count, MPI_Datatype in_type, void* out,
                                MPI_Count out_count, MPI_Datatype out_type, MPI_Comm comm) {
  return all_to_all(in, in_count, in_type, out, out_count, out_type, comm, [&] {
    return PMPI_Alltoall_c(in, in_count, in_type, out, out_count, out_type, comm);
  });
}

RONDO_OF_MPI int MPI_Alltoallv_c(const void* in, const MPI_Count* in_counts,
                                 const MPI_Aint* in_places, MPI_Datatype in_type, void* out,
                                 const MPI_Count* out_counts, const MPI_Aint* out_places,
                                 MPI_Datatype out_type, MPI_Comm comm) {
  return all_to_all_v(in, Counts(in_counts), Counts(in_places), in_type, out, Counts(out_counts),
                      Counts(out_places), out_type, comm, [&] {
                        return PMPI_Alltoallv_c(in, in_counts, in_places, in_type, out, out_counts,
                                                out_places, out_type, comm);
                      });
}

RONDO_OF_MPI int MPI_Allreduce_c(const void* in, void* out, MPI_Count count, MPI_Datatype type,
                                 MPI_Op op, MPI_Comm comm) {
  return all_reduce(in, out, count, type, op, comm,
                    [&] { return PMPI_Allreduce_c(in, out, count, type, op, comm); });
}

RONDO_OF_MPI int MPI_Iallreduce_c(const void* in, void* out, MPI_Count count, MPI_Datatype type,
                                  MPI_Op op, MPI_Comm comm, MPI_Request* request) {
  return iall_reduce(in, out, count, type, op, comm, request,
                     [&] { return PMPI_Iallreduce_c(in, out, count, type, op, comm, request); });
}

RONDO_OF_MPI int MPI_Reduce_c(const void* in, void* out, MPI_Count count, MPI_Datatype type,
                              MPI_Op op, int root, MPI_Comm comm) {
  return reduce(in, out, count, type, op, root, comm,
                [&] { return PMPI_Reduce_c(in, out, count, type, op, root, comm); });
}

RONDO_OF_MPI int MPI_Reduce_scatter_c(const void* in, void* out, const MPI_Count* counts,
                                      MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return reduce_scatter(in, out, Counts(counts), type, op, comm,
                        [&] { return PMPI_Reduce_scatter_c(in, out, counts, type, op, comm); });
}

RONDO_OF_MPI int MPI_Reduce_scatter_block_c(const void* in, void* out, MPI_Count count,
                                            MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return reduce_scatter_block(in, out, count, type, op, comm, [&] {
    return PMPI_Reduce_scatter_block_c(in, out, count, type, op, comm);
  });
}

}  // extern "C"
