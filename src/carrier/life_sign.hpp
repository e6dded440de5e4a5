// A Unix socket that a process holds shows the other processes of its host that it lives. The
// system closes the socket when the process ends, however that is, and when the process executes
// another program. Unlike a process id, the socket's name means the same to processes of other
// containers, and no descriptor is needed to watch it.
#pragma once

#include <cstdint>
#include <optional>

namespace rondo::detail {

// The random part of the socket's name, which is in Linux's abstract namespace; 0: none.
using LifeSign = std::uint64_t;

// Returns the sign of this process, which the first call makes. A forked child has another one.
// Returns 0 if the system makes no socket.
LifeSign life_sign_of_this_process();

// Says whether the process with that sign lives; nothing if this process has no sign of its own any
// more, which it needs to find that out. The processes must share a network namespace, as do all
// that share memory (bootstrap/local_socket.hpp).
std::optional<bool> shows_life(LifeSign sign);

}  // namespace rondo::detail
