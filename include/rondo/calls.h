/** \file
 * Collectives and messages in C. What is said of them in rondo/collectives.hpp,
 * rondo/exchanges.hpp and rondo/call.hpp holds here.
 *
 * `count` is in elements, of the whole vector; each rank's chunk of it is that of rondo_chunk().
 * `in` and `out` are the same buffer (in place) or do not overlap. In place, a rank's own chunk
 * lies at its place in the whole vector. `options` may be NULL. Every rank makes the same
 * collectives in the same order, with the same type, count, reduction, root and algorithm.
 *
 * Each returns what a call can end with: RONDO_USAGE_ERROR before anything has moved, else
 * RONDO_MISMATCH_ERROR, RONDO_TIMEOUT_ERROR, RONDO_PEER_ERROR or RONDO_TRANSPORT_ERROR, which end
 * the communicator. A thread must not be cancelled (pthread_cancel) in a call.
 */
#ifndef RONDO_CALLS_H
#define RONDO_CALLS_H

#include <rondo/communicator.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Chunk `index` when `count` elements are cut into `chunks`, at least one: its first element and
 * its size. */
RONDO_C_API void rondo_chunk(size_t count, size_t chunks, size_t index, size_t* offset,
                             size_t* chunk_count) RONDO_NOEXCEPT;

/** Every element of `out` becomes the reduction of that of all ranks' `in`. */
RONDO_C_API rondo_status rondo_all_reduce(rondo_comm* comm, const void* in, void* out, size_t count,
                                          rondo_type type, rondo_op op,
                                          const rondo_call_options* options) RONDO_NOEXCEPT;
/** `in`: the whole vector; `out`: this rank's chunk of the reduction. */
RONDO_C_API rondo_status rondo_reduce_scatter(rondo_comm* comm, const void* in, void* out,
                                              size_t count, rondo_type type, rondo_op op,
                                              const rondo_call_options* options) RONDO_NOEXCEPT;
/** `in`: this rank's chunk; `out`: the whole vector. */
RONDO_C_API rondo_status rondo_all_gather(rondo_comm* comm, const void* in, void* out, size_t count,
                                          rondo_type type,
                                          const rondo_call_options* options) RONDO_NOEXCEPT;
/** The same two with chunks of `counts[rank]` elements, which are the same on all ranks. */
RONDO_C_API rondo_status rondo_reduce_scatter_v(rondo_comm* comm, const void* in, void* out,
                                                const size_t* counts, rondo_type type, rondo_op op,
                                                const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_all_gather_v(rondo_comm* comm, const void* in, void* out,
                                            const size_t* counts, rondo_type type,
                                            const rondo_call_options* options) RONDO_NOEXCEPT;
/** `out` becomes the root's `in`, which other ranks may leave NULL. */
RONDO_C_API rondo_status rondo_broadcast(rondo_comm* comm, const void* in, void* out, size_t count,
                                         rondo_type type, int root,
                                         const rondo_call_options* options) RONDO_NOEXCEPT;
/** The root's `out`, which other ranks may leave NULL, becomes the reduction. */
RONDO_C_API rondo_status rondo_reduce(rondo_comm* comm, const void* in, void* out, size_t count,
                                      rondo_type type, rondo_op op, int root,
                                      const rondo_call_options* options) RONDO_NOEXCEPT;
/** Returns when all ranks have called it. */
RONDO_C_API rondo_status rondo_barrier(rondo_comm* comm,
                                       const rondo_call_options* options) RONDO_NOEXCEPT;
/** The root's `out` gets the `in` of all ranks, `count` / size elements of each. */
RONDO_C_API rondo_status rondo_gather(rondo_comm* comm, const void* in, void* out, size_t count,
                                      rondo_type type, int root,
                                      const rondo_call_options* options) RONDO_NOEXCEPT;
/** Each rank's `out` gets its part of the root's `in`, `count` / size elements. */
RONDO_C_API rondo_status rondo_scatter(rondo_comm* comm, const void* in, void* out, size_t count,
                                       rondo_type type, int root,
                                       const rondo_call_options* options) RONDO_NOEXCEPT;
/** Rank r gets part r of every rank's `in`, in the order of the ranks. */
RONDO_C_API rondo_status rondo_all_to_all(rondo_comm* comm, const void* in, void* out, size_t count,
                                          rondo_type type,
                                          const rondo_call_options* options) RONDO_NOEXCEPT;
/** Messages: two ranks make them, in the same order. */
RONDO_C_API rondo_status rondo_send(rondo_comm* comm, const void* in, size_t count, rondo_type type,
                                    int to, const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_recv(rondo_comm* comm, void* out, size_t count, rondo_type type,
                                    int from, const rondo_call_options* options) RONDO_NOEXCEPT;
/** Sends `count` elements and receives `received` at the same time. */
RONDO_C_API rondo_status rondo_sendrecv(rondo_comm* comm, const void* in, size_t count, int to,
                                        void* out, size_t received, int from, rondo_type type,
                                        const rondo_call_options* options) RONDO_NOEXCEPT;

/** A call as plain values, as rondo::Call (rondo/call.hpp): for those that run asynchronously, and
 * for programs that pass calls on. Begin with RONDO_CALL:
 *
 *     rondo_call call = RONDO_CALL(RONDO_ALL_REDUCE);
 *     call.in = call.out = gradient;
 *     call.count = 1000;
 *     rondo_work* work;
 *     if (rondo_start(comm, &call, &work) == RONDO_OK) rondo_wait(work);
 *     rondo_work_destroy(work);
 */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_call) */
  rondo_collective collective;
  rondo_type type;
  const void* in;
  void* out;
  size_t count; /**< elements: of the whole vector, or those that are sent, or received by recv */
  rondo_op op;
  int root;
  int to;               /**< of send and sendrecv */
  int from;             /**< of recv and sendrecv */
  size_t received;      /**< elements that sendrecv receives */
  const size_t* counts; /**< of reduce_scatter and all_gather; NULL: equal chunks */
  const rondo_call_options* options;
} rondo_call;
#define RONDO_CALL(collective)                                                \
  {sizeof(rondo_call), collective,    RONDO_F32, NULL, NULL, 0, RONDO_SUM, 0, \
   RONDO_NO_RANK,      RONDO_NO_RANK, 0,         NULL, NULL}

/** The handle of a call that was started; its caller owns it. It may outlive its communicator. */
typedef struct rondo_work rondo_work;

/** Makes the call, and returns when it is done. */
RONDO_C_API rondo_status rondo_run(rondo_comm* comm, const rondo_call* call) RONDO_NOEXCEPT;
/** Starts the call; its buffers must live until it is done. Where this fails, `*work` is NULL. */
RONDO_C_API rondo_status rondo_start(rondo_comm* comm, const rondo_call* call,
                                     rondo_work** work) RONDO_NOEXCEPT;
/** Waits until the call is done, and returns its status, each time. */
RONDO_C_API rondo_status rondo_wait(const rondo_work* work) RONDO_NOEXCEPT;
/** Whether rondo_wait() would return at once. */
RONDO_C_API int rondo_done(const rondo_work* work) RONDO_NOEXCEPT;
/** Does not end the call. Does nothing with NULL. */
RONDO_C_API void rondo_work_destroy(rondo_work* work) RONDO_NOEXCEPT;

/** The algorithm that a call would use, as far as this rank knows. */
RONDO_C_API rondo_status rondo_algorithm_for(const rondo_comm* comm, const rondo_call* call,
                                             rondo_algorithm* algorithm) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
