/** \file
 * Reachable memory for C programs; rondo/reachable_memory.hpp says what that is, and what holds for
 * all memory of this kind. Any thread may call these functions.
 */
#ifndef RONDO_MEMORY_H
#define RONDO_MEMORY_H

#include <rondo/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Returns `bytes` bytes, aligned for every type; NULL, and sets errno to ENOMEM, if there is too
 * little memory, or, from 2 KiB on, if RONDO_ARENA_BYTES is no number of bytes. The caller frees
 * them by rondo_free(). */
RONDO_C_API void* rondo_malloc(size_t bytes) RONDO_NOEXCEPT;

/** Frees what rondo_malloc() or rondo_realloc() has returned. Does nothing with NULL. */
RONDO_C_API void rondo_free(void* memory) RONDO_NOEXCEPT;

/** Returns memory of `bytes` bytes with the contents of `memory`, as far as both reach, and frees
 * `memory`, which may be the same. With NULL it is rondo_malloc(); with 0 bytes it frees and
 * returns NULL. If there is too little memory, it returns NULL, sets errno to ENOMEM, and leaves
 * `memory` as it is. */
RONDO_C_API void* rondo_realloc(void* memory, size_t bytes) RONDO_NOEXCEPT;

/** Returns `count` elements of `element_bytes` bytes, zeroed and aligned to a page, else as
 * rondo_malloc(). */
RONDO_C_API void* rondo_calloc(size_t count, size_t element_bytes) RONDO_NOEXCEPT;

/** Says whether children that this process forks from now on get none of its reachable memory (1),
 * or share it (0). RONDO_TRANSPORT_ERROR if the system does not do it. */
RONDO_C_API rondo_status rondo_hide_reachable_memory(int hide) RONDO_NOEXCEPT;

/** Memory that the program has already, and that was made reachable. */
typedef struct rondo_adopted rondo_adopted;
/** Makes the pages of this memory reachable, at the same addresses and with their contents:
 * rondo/adopt.hpp says what must not happen meanwhile. RONDO_USAGE_ERROR if a page is not ordinary
 * memory, RONDO_TRANSPORT_ERROR if there is too little; nothing has changed then. */
RONDO_C_API rondo_status rondo_adopt(void* memory, size_t bytes,
                                     rondo_adopted** adopted) RONDO_NOEXCEPT;
/** Moves the pages back. Does nothing with NULL. */
RONDO_C_API void rondo_adopted_destroy(rondo_adopted* adopted) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
