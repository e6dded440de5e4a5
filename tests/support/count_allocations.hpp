// Counts what the program asks of operator new.
#pragma once

namespace rondo::test {

// By all threads, so far.
long allocations();

}  // namespace rondo::test
