#include "base/threads.hpp"

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

void throw_no_thread(std::string_view task, const std::system_error& error) {
  throw TransportError(
      fmt::format("the thread that {} cannot be started: {}; allow this user more processes and "
                  "threads (ulimit -u; in a container, the cgroup's pids.max), or, where address "
                  "space is limited, more of it (ulimit -v) or smaller stacks (ulimit -s)",
                  task, error.code().message()));
}

}  // namespace rondo::detail
