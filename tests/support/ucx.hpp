// Whether a test can use UCX.
#pragma once

#include "net/ucx_messenger.hpp"

namespace rondo::test {

// Null where UCX can be tested.
inline const char* reason_against_ucx() {
#ifdef __SANITIZE_THREAD__
  return "the thread sanitizer does not see how UCX orders its accesses";
#endif
  return detail::has_ucx() ? nullptr : "built without UCX";
}

}  // namespace rondo::test
