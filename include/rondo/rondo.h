/** \file
 * All of Rondo's C interface for ranks and host memory, in one include; rondo/mpi.h, which needs
 * MPI's header, is not among it. C11, and C++ (where rondo/rondo.hpp has more).
 *
 *     rondo_comm* comm;
 *     if (rondo_from_environment(NULL, &comm) != RONDO_OK) {
 *       fprintf(stderr, "%s\n", rondo_last_error());
 *       exit(1);
 *     }
 *     rondo_all_reduce(comm, data, data, count, RONDO_F32, RONDO_SUM, NULL);
 *     rondo_comm_destroy(comm);
 *
 * Functions that can fail return a status, and rondo_last_error() has the text. Handles are owned
 * by whoever made them, and end by the function whose name ends in _destroy. Structures that a
 * program fills, or gives to be filled, begin with their size, so that it runs with later releases
 * of the library, which may add to them; each has a macro to begin with.
 */
#ifndef RONDO_RONDO_H
#define RONDO_RONDO_H

#include <rondo/calls.h>
#include <rondo/communicator.h>
#include <rondo/gradient_reducer.h>
#include <rondo/memory.h>
#include <rondo/types.h>

#endif
