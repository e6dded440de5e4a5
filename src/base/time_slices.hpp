// How long the scheduler lets a thread run at a time.
#pragma once

namespace rondo::detail {

// Asks the scheduler for short time slices for the calling thread (Linux 6.12), so that it runs
// soon after it wakes even if other threads compute; its share of the core stays the same.
// Otherwise a woken thread may wait some milliseconds until the time slice of another thread ends.
// Threads and processes that it makes later have short slices, too. Nothing changes if the kernel
// does not support this, for threads that are not SCHED_OTHER, or where RONDO_SHORT_SLICES is 0.
void take_short_slices();

// The same for as long as others want the core: given back by the usual slices of the system. A
// thread that has taken them keeps them.
void borrow_short_slices();
void give_back_short_slices();

}  // namespace rondo::detail
