// By what the other processes of a host see that this one lives: a Unix socket that it holds. The
// system closes it when the process ends, however that is, and when the process executes another
// program. Unlike a process id, its name means the same to processes of other containers; and no
// descriptor is needed to watch it.
#pragma once

#include <cstdint>
#include <optional>

namespace rondo::detail {

// The random part of the socket's name, which is in Linux's abstract namespace; 0: none.
using LifeSign = std::uint64_t;

// Of this process: made by the first call. A forked child has another one. 0 where the system makes
// no socket.
LifeSign life_sign_of_this_process();

// Whether the process with that sign lives; nothing if this process has no sign of its own any
// more, with which to tell. Only processes that share a network namespace can, as do all that share
// memory (bootstrap/local_socket.hpp).
std::optional<bool> shows_life(LifeSign sign);

}  // namespace rondo::detail
