#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/fnv1a.hpp"
#include "base/random_number.hpp"
#include "topology/machine.hpp"

namespace rondo::detail {

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "unknown";
  return name.data();
}

std::uint64_t host_id(std::string_view name, std::string_view boot_id) {
  return fnv1a(std::string(name) + " " + std::string(boot_id));
}

// Read once, since later the process may have no descriptor left.
std::string machine_boot_id() {
  static std::mutex mutex;
  static std::string known;
  const std::lock_guard lock(mutex);
  for (const char* name : {"/proc/sys/kernel/random/boot_id", "/etc/machine-id"}) {
    if (!known.empty()) break;
    std::ifstream file(name);
    if (!file && (errno == EMFILE || errno == ENFILE)) {
      throw TransportError(
          fmt::format("this process cannot tell which host it is on: {} cannot be read: {}; allow "
                      "more open files (ulimit -n)",
                      name, std::strerror(errno)));
    }
    std::getline(file, known);
  }
  return known;
}

std::uint64_t this_host_id() {
  try {
    return host_id(host_name(), machine_boot_id());
  } catch (const TransportError&) {
    return random_number();
  }
}

}  // namespace rondo::detail
