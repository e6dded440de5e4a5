/// \file
/// Communicators over MPI processes: the only public header that includes MPI.
#pragma once

#include <mpi.h>

#include <rondo/communicator.hpp>

namespace rondo {

/// A communicator of the ranks of `comm`, which is duplicated and never used otherwise. Ranks that
/// share a host are joined by shared memory, others by MPI messages, or by UCX with
/// CarrierChoice::ucx. Collective over `comm`. It waits, as MPI does, without a deadline for a rank
/// that never calls it. Where the ranks are on several hosts, each also opens a TCP connection to
/// rank 0, which listens at NetworkOptions::interface meanwhile: by these they notice when a
/// process ends or a host vanishes. That takes up to three seconds where rank 0 is not reached;
/// then, and in builds without libsodium, a warning is logged, and only deadlines show it.
///
/// Threading: MPI must be initialised and not finalised. While every edge is shared memory, no call
/// needs MPI, so any thread level is enough. With MPI edges a blocking call uses MPI on the calling
/// thread (MPI_THREAD_FUNNELED: from the main thread; MPI_THREAD_SERIALIZED: from any, not while
/// others use MPI), and an asynchronous call uses it on Rondo's progress thread, which needs
/// MPI_THREAD_MULTIPLE. A level that is not enough is a UsageError that names the level needed;
/// Rondo itself requests no level.
///
/// MPI operations of the program itself: MPI goes on with them only while some thread is in an MPI
/// call. Another rank may wait for such an operation (a large MPI_Isend, an MPI_Barrier that this
/// rank has left, one-sided access to its window) while this rank waits in a call of Rondo's. A
/// long wait therefore makes MPI calls too, where it may: on any thread with MPI_THREAD_MULTIPLE,
/// on MPI's main thread with MPI_THREAD_SINGLE and MPI_THREAD_FUNNELED. With MPI_THREAD_SERIALIZED
/// another thread of the program may be in MPI just then, so Rondo makes no MPI call: either wait
/// for such operations before calling Rondo (MPI_Wait, MPI_Win_fence), or make an asynchronous call
/// and MPI calls until Work::done(). The same holds with MPI_THREAD_FUNNELED where the main thread
/// itself waits in Work::wait() or GradientReducer::finish().
///
/// Destroy the communicator, and the reducers that were made with it, before MPI_Finalize.
///
/// Throws UsageError (null communicator, MPI not initialised, MPI that sees this process alone
/// although a launcher has started several, options that differ between ranks or are out of range)
/// and TransportError (too little shared memory, MPI failures).
RONDO_API Communicator from_mpi(MPI_Comm comm, const CommunicatorOptions& options = {});

}  // namespace rondo
