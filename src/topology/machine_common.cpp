#include <unistd.h>

#include <array>

#include "topology/machine.hpp"

namespace rondo::detail {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

}  // namespace rondo::detail
