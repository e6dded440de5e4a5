#include <sched.h>
#include <sys/syscall.h>
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
namespace {

// The first version of the kernel's struct sched_attr, which only recent C libraries declare.
struct SchedulingAttributes {
  std::uint32_t size = sizeof(SchedulingAttributes);
  std::uint32_t policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

void take_short_slices() {
  constexpr std::uint64_t kShortestNs = 100'000;  // that the kernel grants
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime_ns = kShortestNs;
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &attributes, 0));
}

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
