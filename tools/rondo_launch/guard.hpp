// Two processes that watch each other, so that nothing is left behind though one of them is killed.
#pragma once

#include <sys/types.h>

#include <functional>
#include <vector>

#include "base/file_descriptor.hpp"

namespace rondo::launcher {

using detail::FileDescriptor;

// Signals that a user sends to rondo-launch and that its ranks get, too.
bool is_passed_on(int signal);
// Blocks these and SIGCHLD in this thread, and returns a descriptor from which they are read.
FileDescriptor hear_signals();
// Those that have come, but for SIGCHLD; if `sender` is not 0, those that it has sent.
std::vector<int> read_signals(const FileDescriptor& from, pid_t sender);
// Kills all children of this process, and what they have left to it (PR_SET_CHILD_SUBREAPER), until there are none.
void kill_all_children();

// Calls `work` in a child, and passes signals on to the child. Returns, in the child, what `work` returns, and in this
// process the child's exit code, or 128 and the signal that ended it. If this process is killed, `alive` hangs up; if the
// child is, this process ends all that the child has started.
int under_guard(const std::function<int(const FileDescriptor& alive)>& work);

}  // namespace rondo::launcher
