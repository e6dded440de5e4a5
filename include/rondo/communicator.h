/** \file
 * Communicators in C: how ranks join, split and leave, and where they are. What is said of
 * rondo::Communicator (rondo/communicator.hpp), of its threads and errors holds here.
 *
 * Any thread may call, if the order of calls is the same on all ranks; a handle is destroyed when
 * no thread uses it any more. Functions with a status refuse NULL with RONDO_USAGE_ERROR; those
 * without one must not get NULL, except for those whose names end in _destroy.
 */
#ifndef RONDO_COMMUNICATOR_H
#define RONDO_COMMUNICATOR_H

#include <rondo/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank's membership in a group. */
typedef struct rondo_comm rondo_comm;

/** Each of these makes a communicator, which its caller owns: rondo_comm_destroy(). Where one
 * fails, it leaves NULL. They wait for the other ranks until the timeout of `options`. Ranks that
 * do not fit together are RONDO_USAGE_ERROR, those that do not come RONDO_TIMEOUT_ERROR, too little
 * memory is RONDO_TRANSPORT_ERROR. */

/** The rank that rondo-launch, torchrun, Open MPI's mpirun or Slurm's srun has made this process;
 * without them, the one rank of its group (rondo/start.hpp). */
RONDO_C_API rondo_status rondo_from_environment(const rondo_options* options,
                                                rondo_comm** comm) RONDO_NOEXCEPT;
/** Rank `rank` of `size` processes that meet at `url`: "file:///a/folder", "unix:///a/path" or
 * "tcp://host:port" (rondo/start.hpp). */
RONDO_C_API rondo_status rondo_from_store(const char* url, int rank, int size,
                                          const rondo_options* options,
                                          rondo_comm** comm) RONDO_NOEXCEPT;
/** Rank `rank` of `size` processes of one host and user that meet at the Unix socket `path`. */
RONDO_C_API rondo_status rondo_from_socket(const char* path, int rank, int size,
                                           const rondo_options* options,
                                           rondo_comm** comm) RONDO_NOEXCEPT;
/** A group of `size` ranks in this process: `comms`, an array of as many pointers, gets one for
 * each; give each to its own thread. */
RONDO_C_API rondo_status rondo_local_group(int size, const rondo_options* options,
                                           rondo_comm** comms) RONDO_NOEXCEPT;
/** The ranks that pass the same `*color`, in the order of their `key`, and of their ranks where
 * keys are equal; `color` NULL: none, and `*part` becomes NULL. Collective over `comm`. */
RONDO_C_API rondo_status rondo_split(rondo_comm* comm, const int* color, int key,
                                     rondo_comm** part) RONDO_NOEXCEPT;
/** The same ranks again. Collective. */
RONDO_C_API rondo_status rondo_duplicate(rondo_comm* comm, rondo_comm** other) RONDO_NOEXCEPT;

/** Leaves the group, when the reducers that were made with `comm` are destroyed, too. Finishes the
 * calls that were started. A program that gives up while other ranks wait for its next call calls
 * rondo_abort() first. Does nothing with NULL. */
RONDO_C_API void rondo_comm_destroy(rondo_comm* comm) RONDO_NOEXCEPT;

/** The number of this rank, from 0, and how many there are. */
RONDO_C_API int rondo_rank(const rondo_comm* comm) RONDO_NOEXCEPT;
RONDO_C_API int rondo_size(const rondo_comm* comm) RONDO_NOEXCEPT;

/** Ends the communicator on all ranks: calls in progress and later ones fail with
 * RONDO_PEER_ERROR and `reason`. Any thread may call; does not block. */
RONDO_C_API rondo_status rondo_abort(rondo_comm* comm, const char* reason) RONDO_NOEXCEPT;

/** Whether the communicator has ended, as far as this host has heard: each call fails then. Any
 * thread may ask; does not block. */
RONDO_C_API int rondo_ended(const rondo_comm* comm) RONDO_NOEXCEPT;

/** Who started this process, as rondo_from_environment() sees it: "rondo-launch", "torchrun",
 * "Open MPI", "Slurm", or "" for nobody, and where it cannot be told. The text lives until the
 * thread's next call of this. */
RONDO_C_API const char* rondo_launcher(void) RONDO_NOEXCEPT;

/** Where a rank runs. The texts live as long as the communicator. Begin with RONDO_PLACE. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_place) */
  const char* host;
  int process_id;
  int numa_node;      /**< -1: bound to none, or to several, or not known */
  const char* device; /**< its GPU; "" over host memory */
  uint64_t host_id;   /**< with `host`, equal on ranks of one host */
} rondo_place;
#define RONDO_PLACE {sizeof(rondo_place), NULL, 0, 0, NULL, 0}

/** An edge between two ranks, and why it is carried as it is. Begin with RONDO_EDGE. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_edge) */
  int from;
  int to;
  rondo_carrier carrier;
  int in_ring;
  const char* reason; /**< lives as long as the communicator */
} rondo_edge;
#define RONDO_EDGE {sizeof(rondo_edge), 0, 0, RONDO_ANY_CARRIER, 0, NULL}

/** Where rank `rank` runs; RONDO_USAGE_ERROR for what is no rank. */
RONDO_C_API rondo_status rondo_get_place(const rondo_comm* comm, int rank,
                                         rondo_place* place) RONDO_NOEXCEPT;
/** The rank at this place of the ring, from 0, which has rank 0; -1 outside it. */
RONDO_C_API int rondo_ring_rank(const rondo_comm* comm, int place) RONDO_NOEXCEPT;
/** How many edges there are, and one of them, from 0: those of the ring first and in its order;
 * RONDO_USAGE_ERROR for what is none. */
RONDO_C_API size_t rondo_edge_count(const rondo_comm* comm) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_get_edge(const rondo_comm* comm, size_t index,
                                        rondo_edge* edge) RONDO_NOEXCEPT;

/** The machine as this process sees it. The texts live until the thread's next call of
 * rondo_this_machine(). Begin with RONDO_MACHINE. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_machine) */
  const char* host;
  int cores; /**< hardware threads */
  int numa_nodes;
  uint64_t l2_bytes;
  uint64_t l3_bytes;
  const char* source; /**< of these facts */
} rondo_machine;
#define RONDO_MACHINE {sizeof(rondo_machine), NULL, 0, 0, 0, 0, NULL}
RONDO_C_API rondo_status rondo_this_machine(rondo_machine* machine) RONDO_NOEXCEPT;

/** For a thread that serves communication beside threads that compute: binds the calling thread to
 * hardware thread `*core` (negative: not; NULL: the last one of this rank's share), and asks the
 * scheduler to run it soon after it wakes. `*place`, unless NULL, says where it is then; the text
 * lives until the thread's next call of this. */
RONDO_C_API rondo_status rondo_bind_beside_compute(const rondo_comm* comm, const int* core,
                                                   const char** place) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
