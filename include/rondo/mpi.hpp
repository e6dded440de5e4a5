/// \file
/// Communicators over MPI processes: the only public header that includes MPI.
#pragma once

#include <mpi.h>

#include <rondo/communicator.hpp>

namespace rondo {

/// A communicator of the ranks of `comm`, which is duplicated and never used otherwise. Ranks that share a host are
/// joined by shared memory, others by MPI messages, or by UCX with CarrierChoice::ucx. Collective over `comm`. It waits, as MPI does, without a deadline
/// for a rank that never calls it.
///
/// Threading: MPI must be initialised and not finalised. While every edge is shared memory, MPI is used only in this
/// function, so any thread level is enough. With MPI edges a blocking call uses MPI on the calling thread
/// (MPI_THREAD_FUNNELED: from the main thread; MPI_THREAD_SERIALIZED: from any, not while others use MPI), and an
/// asynchronous call uses it on Rondo's progress thread, which needs MPI_THREAD_MULTIPLE. A level that is not enough
/// is a UsageError that names the level needed; Rondo itself requests no level.
///
/// Destroy the communicator before MPI_Finalize.
///
/// Throws UsageError (null communicator, MPI not initialised, options that differ between ranks or
/// are out of range) and TransportError (too little shared memory, MPI failures).
RONDO_API Communicator from_mpi(MPI_Comm comm, const CommunicatorOptions& options = {});

}  // namespace rondo
