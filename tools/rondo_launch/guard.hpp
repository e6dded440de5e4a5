// Two processes that watch each other, so that nothing is left behind though one of them is killed.
#pragma once

#include <functional>
#include <vector>

#include "base/file_descriptor.hpp"

namespace rondo::launcher {

using detail::FileDescriptor;

// Signals that a user sends to rondo-launch and that its ranks get, too.
bool is_passed_on(int signal);
// Blocks these and SIGCHLD in this thread, and returns a descriptor from which they are read.
FileDescriptor hear_signals();
// Those that have come, except SIGCHLD.
std::vector<int> read_signals(const FileDescriptor& from);
// Kills all children of this process, and what they have left to it (PR_SET_CHILD_SUBREAPER), until
// there are none.
void kill_all_children();

// Calls `work` in a child. Returns, in the child, what `work` returns, and in this process the
// child's exit code, or 128 and the signal that ended it. Signals that this process gets arrive in
// the child as bytes from `alive`, one number each: whoever signals all processes of this name
// means them once, so the child does not obey its own. If this process is killed, `alive` hangs up;
// if the child is, this process ends all that the child has started.
int under_guard(const std::function<int(const FileDescriptor& alive)>& work);

}  // namespace rondo::launcher
