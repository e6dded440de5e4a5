/** \file
 * What the functions of Rondo's C interface have in common: status codes, types, reductions,
 * algorithms and options. Their meaning is that of the C++ interface: rondo/types.hpp,
 * rondo/options.hpp and rondo/errors.hpp say more.
 */
#ifndef RONDO_TYPES_H
#define RONDO_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <rondo/version.hpp> /* macros alone */

#define RONDO_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define RONDO_NOEXCEPT noexcept
#define RONDO_ENUM : int /* so that other numbers, too, may be passed, and are refused */
extern "C" {
#else
#define RONDO_NOEXCEPT
#define RONDO_ENUM
#endif

/** What a function returns; rondo/errors.hpp and docs/errors.md say more of each.
 * - RONDO_USAGE_ERROR: an argument is wrong, or the call comes at the wrong time. Nothing has
 * moved, and the communicator goes on. In an iteration of a reducer its gradients are then
 * unspecified.
 * - RONDO_MISMATCH_ERROR, RONDO_TIMEOUT_ERROR, RONDO_PEER_ERROR: a call ended so, and with it the
 *   communicator, or ranks have not joined.
 * - RONDO_TRANSPORT_ERROR: the system, MPI or UCX refused something. Of a call, it ends the
 *   communicator; of rondo_split() and rondo_duplicate(), `comm` goes on.
 * - RONDO_OUT_OF_MEMORY: this process has too little memory for what a function was to make.
 * - RONDO_OTHER_ERROR: a C++ exception of another kind. */
typedef enum RONDO_ENUM {
  RONDO_OK = 0,
  RONDO_USAGE_ERROR = 1,
  RONDO_MISMATCH_ERROR = 2,
  RONDO_TIMEOUT_ERROR = 3,
  RONDO_PEER_ERROR = 4,
  RONDO_TRANSPORT_ERROR = 5,
  RONDO_CUDA_ERROR = 6,
  RONDO_OUT_OF_MEMORY = 7,
  RONDO_OTHER_ERROR = 8
} rondo_status;

typedef enum RONDO_ENUM {
  RONDO_F32 = 0,
  RONDO_F64 = 1,
  RONDO_F16 = 2,
  RONDO_BF16 = 3,
  RONDO_I8 = 4,
  RONDO_U8 = 5,
  RONDO_I32 = 6,
  RONDO_U32 = 7,
  RONDO_I64 = 8,
  RONDO_U64 = 9,
  RONDO_I16 = 10,
  RONDO_U16 = 11,
  RONDO_C64 = 12,    /**< a complex number of two floats */
  RONDO_C128 = 13,   /**< a complex number of two doubles */
  RONDO_BOOLEAN = 14 /**< a byte of 0 or 1 */
} rondo_type;

typedef enum RONDO_ENUM {
  RONDO_SUM = 0,
  RONDO_PROD = 1,
  RONDO_MIN = 2,
  RONDO_MAX = 3,
  RONDO_AVG = 4,
  RONDO_BIT_AND = 5,
  RONDO_BIT_OR = 6,
  RONDO_BIT_XOR = 7,
  RONDO_LOGICAL_AND = 8,
  RONDO_LOGICAL_OR = 9,
  RONDO_LOGICAL_XOR = 10
} rondo_op;

typedef enum RONDO_ENUM {
  RONDO_ALL_REDUCE = 0,
  RONDO_REDUCE_SCATTER = 1,
  RONDO_ALL_GATHER = 2,
  RONDO_BROADCAST = 3,
  RONDO_REDUCE = 4,
  RONDO_BARRIER = 5,
  RONDO_GATHER = 6,
  RONDO_SCATTER = 7,
  RONDO_ALL_TO_ALL = 8,
  RONDO_SEND = 9,
  RONDO_RECV = 10,
  RONDO_SENDRECV = 11
} rondo_collective;

/** RONDO_DEFAULT: as the communicator has it, which has it from RONDO_ALGO. */
typedef enum RONDO_ENUM {
  RONDO_DEFAULT = -1,
  RONDO_AUTOMATIC = 0,
  RONDO_RING = 1,
  RONDO_NAIVE = 2,
  RONDO_ONE_SHOT = 3,
  RONDO_RECURSIVE_DOUBLING = 4,
  RONDO_DIRECT = 5,
  RONDO_CHAIN = 6,
  RONDO_HALVING_DOUBLING = 7,
  RONDO_HIERARCHICAL = 8,
  RONDO_TREE = 9,
  RONDO_PAIRWISE = 10
} rondo_algorithm;

/** How edges between ranks are carried; of an edge itself, never RONDO_ANY_CARRIER. */
typedef enum RONDO_ENUM {
  RONDO_ANY_CARRIER = 0,
  RONDO_SHM = 1,
  RONDO_MPI = 2,
  RONDO_UCX = 3,
  RONDO_P2P = 4,
  RONDO_IPC = 5,
  RONDO_PINNED = 6
} rondo_carrier;

/** For rondo_call::to and rondo_call::from of calls that do not send, or do not receive. */
#define RONDO_NO_RANK (-1)

/** Of a communicator. Begin with RONDO_OPTIONS, and set what is to differ:
 *
 *     rondo_options options = RONDO_OPTIONS;
 *     options.timeout_s = 30;
 *
 * Functions take NULL for the defaults, and copy what they are given. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_options), by which a library knows what its caller knows */
  double timeout_s;    /**< of a call, in seconds; 0: RONDO_TIMEOUT, else 300 */
  rondo_algorithm algorithm;
  rondo_carrier carrier; /**< RONDO_ANY_CARRIER, RONDO_SHM, RONDO_MPI or RONDO_UCX */
  int rank_order;        /**< floating-point reductions are made in rank order */
  int without_secret;    /**< ranks meet at any address, although they know no secret */
  size_t slot_bytes;     /**< 0: chosen by carrier */
  size_t slots;          /**< 0: chosen by carrier */
  const char* secret;    /**< NULL: RONDO_SECRET; "": none */
  const char* interface; /**< NULL: RONDO_INTERFACE; "": any */
  /** Functions that join call it now and then while they wait for other ranks, with
   * give_up_context; if it returns something else than 0, they end with RONDO_TRANSPORT_ERROR.
   * NULL: they wait until the deadline. */
  int (*give_up_if)(void* context);
  void* give_up_context;
} rondo_options;
#define RONDO_OPTIONS \
  {sizeof(rondo_options), 0, RONDO_DEFAULT, RONDO_ANY_CARRIER, 0, 0, 0, 0, NULL, NULL, NULL, NULL}

/** Of a call; NULL: the communicator's. */
typedef struct {
  size_t struct_bytes; /**< sizeof(rondo_call_options) */
  double timeout_s;    /**< in seconds; 0: the communicator's */
  rondo_algorithm algorithm;
  int background; /**< the call runs beside computation, and leaves its core where it waits */
} rondo_call_options;
#define RONDO_CALL_OPTIONS {sizeof(rondo_call_options), 0, RONDO_DEFAULT, 0}

/** The text of the calling thread's last error; "" if it had none. It says rank, peer, call, cause
 * and cure, and lives until the thread's next error. */
RONDO_C_API const char* rondo_last_error(void) RONDO_NOEXCEPT;

/** The names of values, such as "f32"; "invalid" for what is none. They live for ever. */
RONDO_C_API const char* rondo_status_name(rondo_status status) RONDO_NOEXCEPT;
RONDO_C_API const char* rondo_type_name(rondo_type type) RONDO_NOEXCEPT;
RONDO_C_API const char* rondo_op_name(rondo_op op) RONDO_NOEXCEPT;
RONDO_C_API const char* rondo_collective_name(rondo_collective collective) RONDO_NOEXCEPT;
RONDO_C_API const char* rondo_algorithm_name(rondo_algorithm algorithm) RONDO_NOEXCEPT;
RONDO_C_API const char* rondo_carrier_name(rondo_carrier carrier) RONDO_NOEXCEPT;

/** The algorithm with this name, or RONDO_DEFAULT if there is none. */
RONDO_C_API rondo_algorithm rondo_algorithm_named(const char* name) RONDO_NOEXCEPT;
/** Bytes of one element; 0 for what is no type. */
RONDO_C_API size_t rondo_size_of(rondo_type type) RONDO_NOEXCEPT;
/** Whether a call may combine them (rondo/types.hpp). */
RONDO_C_API int rondo_supports(rondo_type type, rondo_op op) RONDO_NOEXCEPT;

/** The version of the library, such as "0.1.0"; RONDO_VERSION is that of the headers. */
RONDO_C_API const char* rondo_version(void) RONDO_NOEXCEPT;

/** Messages of the library. */
typedef enum RONDO_ENUM { RONDO_LOG_INFO = 0, RONDO_LOG_WARNING = 1 } rondo_log_level;
/** Gets one message without a line end, which lives until it returns. It may be called on any
 * thread, one call at a time, and must not call into Rondo. */
typedef void (*rondo_log_hook)(void* user, rondo_log_level level, const char* message);
/** Sends messages of `lowest` level and above to `hook`, in place of where they went before; NULL
 * silences the library. Without this call, RONDO_LOG=info|warning makes messages of that level and
 * above go to standard error. Any thread may call. */
RONDO_C_API rondo_status rondo_set_log_hook(rondo_log_hook hook, void* user,
                                            rondo_log_level lowest) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
