/// \file
/// Memory that the other processes of a host reach, for programs that bring their own containers.
#pragma once

#include <memory_resource>

#include <rondo/export.hpp>

namespace rondo {

/// The memory resource of this process whose memory the ranks of other processes of the host reach:
///
///     std::pmr::vector<float> gradients(n, &rondo::reachable_memory());
///
/// If all ranks pass such memory to a call, whole or in parts, Algorithm::direct can carry the
/// call, and no byte is copied on its way from one rank's buffer to another's. Where hosts hold
/// several ranks, Algorithm::hierarchical uses the memory so inside each host. Ranks of one process
/// reach all memory anyway; buffers that they pass to one call must not overlap, unless the call
/// only reads them.
///
/// No communicator is needed, and nothing is collective: every rank allocates what it likes, in any
/// order and at any time, and communicators that exist or come later find it. Any thread may
/// allocate, and free what another has allocated, also while calls are in progress, except for the
/// buffers of those calls.
///
/// Objects of less than 2 KiB are ordinary memory, which is as fast for calls of that size;
/// whatever is aligned to a page is not.
///
/// The memory is part of one arena of this process: a file without a name and of a fixed size,
/// which only processes of the same user that join a communicator with this one get. Its size is
/// four times the machine's memory, but at most 64 TiB divided by the number of its hardware
/// threads, since every process has addresses for the arenas of all others; or RONDO_ARENA_BYTES
/// (at least 16 MiB). Pages are huge where the system allows that to shared memory; they take
/// memory only while they are allocated. Of what was freed, as much is kept for the next allocation
/// as is still allocated, and at least 64 MiB. Core dumps leave it out. allocate() throws
/// std::bad_alloc if there is too little memory, by any limit of this process or of its control
/// group, so that using the memory later cannot fail. Where the system gives no such file (a
/// sandbox without memfd_create, limits of addresses or of file sizes), the resource gives ordinary
/// memory, and a warning in the log says so once. Where limits are narrow (ulimit -v, -f), the
/// arena is smaller.
///
/// A child that the program forks shares the pages: what it writes there, its parent and all ranks
/// read, and what its parent frees may become part of something else that the child then sees. What
/// the child itself allocates is in an arena of its own, and what it frees of its parent stays
/// allocated. hide_reachable_memory_from_children() changes that. As long as such a child lives,
/// the memory of its parent and that of the ranks whose memory its parent had mapped is not given
/// back.
///
/// If a call on a failed communicator finds that a process which was stopped still writes to its
/// buffers, it replaces their pages by private memory with the same contents, at the same
/// addresses, as soon as no other call uses them. Those are not reachable any more; calls with them
/// work as with ordinary memory. The pages that they replace stay reserved until the process ends.
///
/// The resource lives as long as the process. Throws UsageError, when it first allocates 2 KiB or
/// more, if RONDO_ARENA_BYTES is no number of bytes.
RONDO_API std::pmr::memory_resource& reachable_memory();

/// Whether children that this process forks from now on get none of its reachable memory, so that
/// they end with SIGSEGV where they touch it (MADV_DONTFORK): such a child cannot change what its
/// parent has, and keeps none of its parent's memory when that has ended. What the parent has
/// mapped of other processes, and what it has adopted (rondo/adopt.hpp), is not hidden. Throws
/// TransportError if the system does not do it. There is nothing to hide where memory is ordinary
/// memory.
RONDO_API void hide_reachable_memory_from_children(bool hide);

}  // namespace rondo
