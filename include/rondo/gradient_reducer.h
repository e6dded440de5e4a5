/** \file
 * The gradient reducer in C: averages gradients over the ranks while backprop still computes the
 * next ones. What is said of rondo::GradientReducer (rondo/gradient_reducer.hpp) and of its options
 * (rondo/gradients.hpp) holds here.
 *
 *     rondo_parameter parameters[] = {RONDO_PARAMETER("w", w_slopes, w, 1000, RONDO_F32)};
 *     rondo_reducer* reducer;
 *     rondo_reducer_create(comm, parameters, 1, NULL, &reducer);
 *     ... backprop: rondo_reducer_mark_ready(reducer, 0); ...
 *     rondo_reducer_finish(reducer);  // averages are in w_slopes
 *     rondo_reducer_destroy(reducer);
 */
#ifndef RONDO_GRADIENT_REDUCER_H
#define RONDO_GRADIENT_REDUCER_H

#include <rondo/communicator.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One parameter of a model. Its memory must outlive the reducer; `name` is copied. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_parameter) */
  const char* name;
  void* gradient; /**< NULL: in the reducer's own memory (rondo_reducer_gradient()) */
  void* value;    /**< the values, which take rank 0's; NULL: the reducer may not write them */
  const void* compared; /**< the values, where they are compared; NULL: they are not known */
  size_t count;         /**< elements */
  rondo_type type;
  int unused; /**< 0 */
} rondo_parameter;
#define RONDO_PARAMETER(name, gradient, value, count, type) \
  {sizeof(rondo_parameter), name, gradient, value, NULL, count, type, 0}

typedef enum RONDO_ENUM {
  RONDO_AVERAGE_SUM = 0,
  RONDO_AVERAGE_RANKS = 1,
  RONDO_AVERAGE_SAMPLES = 2
} rondo_average;
typedef enum RONDO_ENUM {
  RONDO_WIRE_EXACT = 0,
  RONDO_WIRE_BF16 = 1,
  RONDO_WIRE_F16 = 2
} rondo_wire_type;

/** One bucket, packed and scaled, so that the sum over the ranks is the result. */
typedef struct {
  size_t index;
  void* data;
  size_t count;
  rondo_type type;
} rondo_bucket;

/** A program's own way to sum a bucket over the ranks, in place; it must leave the same bits on
 * every rank. It makes its calls on `comm`, which is the reducer's and lives until it returns.
 * Another status than RONDO_OK ends the communicator, and is what rondo_reducer_finish() returns.
 */
typedef rondo_status (*rondo_bucket_hook)(void* user, rondo_comm* comm, const rondo_bucket* bucket);

/** For rondo_gradient_options::progress_core: the reducer's thread is not bound, or bound to the
 * last core of this rank's share of the machine. */
#define RONDO_ANY_CORE (-1)
#define RONDO_LAST_CORE (-2)

/** Begin with RONDO_GRADIENT_OPTIONS. */
typedef struct {
  size_t struct_bytes;       /**< sizeof(rondo_gradient_options) */
  size_t bucket_bytes;       /**< 0: chosen by what is measured */
  size_t first_bucket_bytes; /**< 0: a quarter of that */
  rondo_average average;
  rondo_wire_type wire;
  int gradients_are_sums; /**< of samples, not their means; RONDO_AVERAGE_SAMPLES needs to know */
  int allow_unused;       /**< gradients that were not marked count as zeros */
  rondo_bucket_hook hook; /**< NULL: an all_reduce */
  void* user;             /**< for the hook */
  int in_order_of_parameters; /**< buckets do not follow the first backward pass */
  int layout_independent;     /**< the same bits whatever the sizes of buckets */
  int no_overlap;             /**< buckets are averaged in rondo_reducer_finish() */
  int trace;                  /**< records a timeline */
  int progress_core;          /**< a hardware thread, RONDO_ANY_CORE or RONDO_LAST_CORE */
  rondo_algorithm algorithm;
  double timeout_s; /**< in seconds; 0: the communicator's */
} rondo_gradient_options;
#define RONDO_GRADIENT_OPTIONS     \
  {sizeof(rondo_gradient_options), \
   0,                              \
   0,                              \
   RONDO_AVERAGE_RANKS,            \
   RONDO_WIRE_EXACT,               \
   0,                              \
   0,                              \
   NULL,                           \
   NULL,                           \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   RONDO_LAST_CORE,                \
   RONDO_DEFAULT,                  \
   0}

typedef struct rondo_reducer rondo_reducer;

/** Collective. `parameters`: in the order of the forward pass. */
RONDO_C_API rondo_status rondo_reducer_create(rondo_comm* comm, const rondo_parameter* parameters,
                                              size_t count, const rondo_gradient_options* options,
                                              rondo_reducer** reducer) RONDO_NOEXCEPT;
/** In the middle of an iteration this ends the communicator. Does nothing with NULL. */
RONDO_C_API void rondo_reducer_destroy(rondo_reducer* reducer) RONDO_NOEXCEPT;

/** Gradient `parameter` is complete. Several threads may call this; all other functions of a
 * reducer are for one thread. */
RONDO_C_API rondo_status rondo_reducer_mark_ready(rondo_reducer* reducer,
                                                  size_t parameter) RONDO_NOEXCEPT;
/** The same, and RONDO_USAGE_ERROR unless this is the memory that the reducer knows. */
RONDO_C_API rondo_status rondo_reducer_mark_ready_at(rondo_reducer* reducer, size_t parameter,
                                                     const void* gradient, size_t count,
                                                     rondo_type type) RONDO_NOEXCEPT;
/** Waits until the averages of all gradients are in place. */
RONDO_C_API rondo_status rondo_reducer_finish(rondo_reducer* reducer) RONDO_NOEXCEPT;
/** For RONDO_AVERAGE_SAMPLES: how many samples the next iteration's gradients stand for. */
RONDO_C_API rondo_status rondo_reducer_set_samples(rondo_reducer* reducer,
                                                   uint64_t samples) RONDO_NOEXCEPT;
/** From one to the other, marks and rondo_reducer_finish() average nothing. */
RONDO_C_API rondo_status rondo_reducer_begin_no_sync(rondo_reducer* reducer) RONDO_NOEXCEPT;
RONDO_C_API rondo_status rondo_reducer_end_no_sync(rondo_reducer* reducer) RONDO_NOEXCEPT;
/** This rank has no more data, and takes part in the others' iterations until none has. After each,
 * `after_iteration` is called, unless it is NULL. Collective. */
RONDO_C_API rondo_status rondo_reducer_join(rondo_reducer* reducer,
                                            void (*after_iteration)(void* user),
                                            void* user) RONDO_NOEXCEPT;

/** Where a gradient is; it may move when rondo_reducer_layout() changes. NULL for what is no
 * parameter. */
RONDO_C_API void* rondo_reducer_gradient(const rondo_reducer* reducer,
                                         size_t parameter) RONDO_NOEXCEPT;
/** Its elements; 0 for what is no parameter. */
RONDO_C_API size_t rondo_reducer_count(const rondo_reducer* reducer,
                                       size_t parameter) RONDO_NOEXCEPT;
/** How often gradients in the reducer's own memory have moved. */
RONDO_C_API int rondo_reducer_layout(const rondo_reducer* reducer) RONDO_NOEXCEPT;
/** The limit on the bytes of a bucket that is in force. */
RONDO_C_API size_t rondo_reducer_bucket_bytes(const rondo_reducer* reducer) RONDO_NOEXCEPT;

/** How many buckets there are, and the parameters of one, in the order in which they go: returns
 * how many it has, and writes up to `room` of them; 0 for what is no bucket. */
RONDO_C_API size_t rondo_reducer_bucket_count(const rondo_reducer* reducer) RONDO_NOEXCEPT;
RONDO_C_API size_t rondo_reducer_bucket(const rondo_reducer* reducer, size_t index,
                                        size_t* parameters, size_t room) RONDO_NOEXCEPT;
/** What the reducer's thread is bound to, and why. The text lives until the thread's next call of
 * this. */
RONDO_C_API const char* rondo_reducer_progress_place(const rondo_reducer* reducer) RONDO_NOEXCEPT;

/** Of the iteration that finished last; times in microseconds. Begin with
 * RONDO_GRADIENT_STATISTICS. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_gradient_statistics) */
  uint64_t iteration;  /**< number among those that communicated, from 1 */
  size_t bytes;        /**< of all buckets */
  size_t buckets;
  double compute_us;      /**< from the first mark to rondo_reducer_finish() */
  double transfer_us;     /**< in which a bucket was in transfer */
  double exposed_us;      /**< for which rondo_reducer_finish() blocked */
  double hidden_fraction; /**< 1 - exposed / transfer */
  uint64_t reordered;     /**< 1: buckets were formed anew at the end of it */
} rondo_gradient_statistics;
#define RONDO_GRADIENT_STATISTICS {sizeof(rondo_gradient_statistics), 0, 0, 0, 0, 0, 0, 0, 0}
RONDO_C_API rondo_status rondo_reducer_statistics(
    const rondo_reducer* reducer, rondo_gradient_statistics* statistics) RONDO_NOEXCEPT;
/** The parameters of that iteration in the order of their marks: returns how many there are, and
 * writes up to `room` of them. */
RONDO_C_API size_t rondo_reducer_arrival(const rondo_reducer* reducer, size_t* parameters,
                                         size_t room) RONDO_NOEXCEPT;
/** Of one bucket of it; times since the iteration's first mark. Begin with
 * RONDO_BUCKET_STATISTICS. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_bucket_statistics) */
  size_t bytes;        /**< on the wire, for one rank */
  double ready_us;     /**< all its gradients were there */
  double start_us;     /**< its turn had come */
  double end_us;       /**< the result was in place */
} rondo_bucket_statistics;
#define RONDO_BUCKET_STATISTICS {sizeof(rondo_bucket_statistics), 0, 0, 0, 0}
RONDO_C_API rondo_status rondo_reducer_bucket_statistics(
    const rondo_reducer* reducer, size_t index, rondo_bucket_statistics* statistics) RONDO_NOEXCEPT;
/** Adds a time span of this rank's work, in nanoseconds of CLOCK_MONOTONIC, to the timeline. */
RONDO_C_API rondo_status rondo_reducer_record_compute(rondo_reducer* reducer, const char* what,
                                                      int64_t begin_ns,
                                                      int64_t end_ns) RONDO_NOEXCEPT;
/** Collective: rank 0 writes the timelines of all ranks to `file` (Chrome's trace format). */
RONDO_C_API rondo_status rondo_reducer_write_trace(rondo_reducer* reducer,
                                                   const char* file) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
