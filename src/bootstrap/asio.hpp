// The parts of Asio that joining needs. Asio consists of headers alone, so a program with another
// release of Asio would have two definitions of each function: hence Rondo's has a name of its own.
#pragma once

#define asio rondo_asio  // NOLINT(readability-identifier-naming): Asio's own name
#define ASIO_STANDALONE
#define ASIO_DISABLE_VISIBILITY  // else Asio's functions would be visible outside the library
#define ASIO_NO_DEPRECATED
// One thread runs each io_context, so no handler needs a fence; GCC's thread sanitizer refuses
// them.
#define ASIO_DISABLE_FENCED_BLOCK

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/giving_up.hpp"

namespace rondo::detail {

// Handles what happens until nothing is left to wait for, a handler stops it, or the time is over.
inline void run_until(asio::io_context& network, Clock::time_point deadline) {
  do {
    network.restart();
    network.run_until(next_look(deadline));
  } while (!network.stopped() && !is_over(deadline));
}

}  // namespace rondo::detail
