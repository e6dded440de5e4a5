/** \file
 * Reachable memory for C programs; rondo/reachable_memory.hpp says what that is, and what holds for
 * all memory of this kind. Any thread may call these functions.
 */
#ifndef RONDO_MEMORY_H
#define RONDO_MEMORY_H

#include <stddef.h>

#define RONDO_C_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define RONDO_NOEXCEPT noexcept
extern "C" {
#else
#define RONDO_NOEXCEPT
#endif

/** Returns `bytes` bytes, aligned for every type; NULL, and sets errno to ENOMEM, if there is too
 * little memory, or RONDO_ARENA_BYTES is no number of bytes. The caller frees them by rondo_free().
 */
RONDO_C_API void* rondo_malloc(size_t bytes) RONDO_NOEXCEPT;

/** Frees what rondo_malloc() or rondo_realloc() has returned. Does nothing with NULL. */
RONDO_C_API void rondo_free(void* memory) RONDO_NOEXCEPT;

/** Returns memory of `bytes` bytes with the contents of `memory`, as far as both reach, and frees
 * `memory`, which may be the same. With NULL it is rondo_malloc(); with 0 bytes it frees and
 * returns NULL. If there is too little memory, it returns NULL, sets errno to ENOMEM, and leaves
 * `memory` as it is. */
RONDO_C_API void* rondo_realloc(void* memory, size_t bytes) RONDO_NOEXCEPT;

#ifdef __cplusplus
}
#endif

#endif
