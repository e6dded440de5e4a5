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
/** The same three with chunks of different sizes: `counts[rank]` elements of each rank, the same on
 * all ranks. In all_to_all_v each rank passes its own: `counts[r]` elements of `in` go to rank r,
 * and `received[r]` elements of `out` come from it. */
RONDO_C_API rondo_status rondo_gather_v(rondo_comm* comm, const void* in, void* out,
                                        const size_t* counts, rondo_type type, int root,
                                        const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_scatter_v(rondo_comm* comm, const void* in, void* out,
                                         const size_t* counts, rondo_type type, int root,
                                         const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_all_to_all_v(rondo_comm* comm, const void* in, const size_t* counts,
                                            void* out, const size_t* received, rondo_type type,
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

/** A reduction of the program's own, as rondo::UserReduction (rondo/user_reduction.hpp). Begin with
 * RONDO_REDUCTION:
 *
 *     static void least(void* user, const void* in, void* in_out, size_t count);
 *     rondo_reduction reduction = RONDO_REDUCTION(least, sizeof(struct candidate));
 *     rondo_all_reduce_by(comm, mine, best, 1, &reduction, NULL);
 */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_reduction) */
  /** in_out[i] becomes in[i] op in_out[i], for `count` elements; `in` comes from lower ranks where
   * the reduction does not commute. The two do not overlap, and are aligned as the call's buffers
   * are, up to alignof(max_align_t). Any thread may call it, for different calls at the same time,
   * for any part of a call's elements. It must not call into Rondo, nor leave by longjmp or by an
   * exception. */
  void (*combine)(void* user, const void* in, void* in_out, size_t count);
  void* user;           /**< what `combine` gets; it lives as long as the calls */
  size_t element_bytes; /**< of one element, at least 1 */
  int commutative;      /**< if 0, elements are reduced in the order of ranks */
  int unused;           /**< 0 */
} rondo_reduction;
#define RONDO_REDUCTION(combine, element_bytes) \
  {sizeof(rondo_reduction), combine, NULL, element_bytes, 1, 0}

/** rondo_all_reduce(), rondo_reduce() and rondo_reduce_scatter() by such a reduction. Counts are in
 * its elements. `counts`: those of each rank's chunk, the same on all ranks; NULL: equal chunks of
 * `count`. */
RONDO_C_API rondo_status rondo_all_reduce_by(rondo_comm* comm, const void* in, void* out,
                                             size_t count, const rondo_reduction* reduction,
                                             const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_reduce_by(rondo_comm* comm, const void* in, void* out, size_t count,
                                         const rondo_reduction* reduction, int root,
                                         const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_reduce_scatter_by(rondo_comm* comm, const void* in, void* out,
                                                 size_t count, const size_t* counts,
                                                 const rondo_reduction* reduction,
                                                 const rondo_call_options* options) RONDO_NOEXCEPT;
/** Fills a reduction for pairs of a value of type `value` (f32, f64, or an integer) and an index of
 * type `index` (i32 or i64), laid out as a struct of the two: the least value (RONDO_MIN) or the
 * greatest (RONDO_MAX), of equal ones that with the least index. A NaN wins. */
RONDO_C_API rondo_status rondo_location_reduction(rondo_op op, rondo_type value, rondo_type index,
                                                  rondo_reduction* reduction) RONDO_NOEXCEPT;

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
  const size_t* counts; /**< of collectives with a chunk for each rank; NULL: equal chunks */
  const rondo_call_options* options;
  const size_t* received_counts;    /**< of all_to_all with counts; `received` is their sum */
  const rondo_reduction* reduction; /**< in place of `type` and `op`; NULL: `op` */
} rondo_call;
#define RONDO_CALL(collective)                                                   \
  {sizeof(rondo_call), collective,    RONDO_F32, NULL, NULL, 0,    RONDO_SUM, 0, \
   RONDO_NO_RANK,      RONDO_NO_RANK, 0,         NULL, NULL, NULL, NULL}

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

/** One all_reduce of `how_many` buffers, in place: buffer i has `counts[i]` elements. They travel
 * together, so that many small buffers cost little more than one. All ranks pass the same sizes.
 * The second form starts the call; `buffers` and `counts` need not outlive it. */
RONDO_C_API rondo_status rondo_all_reduce_coalesced(
    rondo_comm* comm, void* const* buffers, const size_t* counts, size_t how_many, rondo_type type,
    rondo_op op, const rondo_call_options* options) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_start_all_reduce_coalesced(rondo_comm* comm, void* const* buffers,
                                                          const size_t* counts, size_t how_many,
                                                          rondo_type type, rondo_op op,
                                                          const rondo_call_options* options,
                                                          rondo_work** work) RONDO_NOEXCEPT;

/** A call that has been checked and planned once, and is made many times, at less cost each time.
 * Its caller owns it, and destroys it before its communicator. */
typedef struct rondo_prepared rondo_prepared;
/** Prepares a call, and copies its counts and its reduction. Where this fails, `*prepared` is
 * NULL. */
RONDO_C_API rondo_status rondo_prepare(rondo_comm* comm, const rondo_call* call,
                                       rondo_prepared** prepared) RONDO_NOEXCEPT;
/** Makes the call, and returns when it is done. */
RONDO_C_API rondo_status rondo_prepared_run(rondo_prepared* prepared) RONDO_NOEXCEPT;
/** Starts the call. It must be done before `prepared` is destroyed. */
RONDO_C_API rondo_status rondo_prepared_start(rondo_prepared* prepared,
                                              rondo_work** work) RONDO_NOEXCEPT;
/** Does nothing with NULL. */
RONDO_C_API void rondo_prepared_destroy(rondo_prepared* prepared) RONDO_NOEXCEPT;

/** The algorithm that a call would use, as far as this rank knows. */
RONDO_C_API rondo_status rondo_algorithm_for(const rondo_comm* comm, const rondo_call* call,
                                             rondo_algorithm* algorithm) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
