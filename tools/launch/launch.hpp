// Starts the ranks of a program: threads of this process, or processes that it forks. (mpirun is the
// third way.)
#pragma once

#include <functional>
#include <rondo/communicator.hpp>

namespace rondo::launch {

// What one rank does; returns the exit code that it wants.
using Body = std::function<int(Communicator)>;

// Runs `body` on `ranks` threads. Returns the largest code; rethrows the lowest failing rank's exception.
int run_threads(int ranks, const Body& body, const CommunicatorOptions& options = {});

// Runs `body` in `ranks` forked processes, which meet at a socket; only before this process has made a
// thread or used a device. `program` is named before what a failing rank says. Returns the largest code.
int run_processes(const char* program, int ranks, const Body& body,
                  const CommunicatorOptions& options = {});

}  // namespace rondo::launch
