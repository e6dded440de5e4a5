/** \file
 * Communicators over MPI processes in C: rondo/mpi.hpp says what that is.
 */
#ifndef RONDO_MPI_H
#define RONDO_MPI_H

#include <mpi.h>

#include <rondo/communicator.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The ranks of `mpi`. Collective over it. Destroy the communicator before MPI_Finalize(). */
RONDO_C_API rondo_status rondo_from_mpi(MPI_Comm mpi, const rondo_options* options,
                                        rondo_comm** comm) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
