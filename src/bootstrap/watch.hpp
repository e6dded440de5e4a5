// Waiting for a socket, by Asio.
#pragma once

#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/file_descriptor.hpp"
#include "bootstrap/asio.hpp"

namespace rondo::detail {

// Waits for something to read from a socket, which it borrows.
class Watch {
 public:
  Watch(asio::io_context& network, const FileDescriptor& socket)
      : descriptor_(network, socket.get()) {}
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch() { descriptor_.release(); }

  // Calls `then` once, unless this object is destroyed first.
  template <class Function>
  static void wait(const std::shared_ptr<Watch>& watch, Function then) {
    watch->descriptor_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        [alive = std::weak_ptr(watch), then = std::move(then)](std::error_code code) {
          // A call may be under way already when the watch is destroyed.
          if (!code && !alive.expired()) then();
        });
  }

 private:
  asio::posix::stream_descriptor descriptor_;
};

// The error where Asio cannot. `caller`: the function that the program has called.
inline TransportError cannot_watch(const char* caller, const std::system_error& error) {
  return TransportError(fmt::format(
      "{}: rank 0 cannot watch connections: {}; allow more open files (ulimit -n), if that is the "
      "reason",
      caller, error.code().message()));
}

}  // namespace rondo::detail
