#include "base/keep_loaded.hpp"

#include <dlfcn.h>

namespace rondo::detail {

void keep_loaded() {
  Dl_info here{};
  static const char anchor = 0;
  if (::dladdr(&anchor, &here) == 0 || here.dli_fname == nullptr) return;
  ::dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

}  // namespace rondo::detail
