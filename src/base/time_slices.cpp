#include "base/time_slices.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "base/environment.hpp"

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

void ask_for_slices(std::uint64_t length_ns) {
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime_ns = length_ns;
  static_cast<void>(::syscall(SYS_sched_setattr, 0, &attributes, 0));
}

constexpr std::uint64_t kShortestNs = 100'000;  // that the kernel grants
constexpr std::uint64_t kUsual = 0;

enum class Slices : std::uint8_t { usual, borrowed, taken };
thread_local Slices slices = Slices::usual;

}  // namespace

void take_short_slices() {
  if (!environment_allows_short_slices()) return;
  slices = Slices::taken;
  ask_for_slices(kShortestNs);
}

void borrow_short_slices() {
  if (slices != Slices::usual || !environment_allows_short_slices()) return;
  slices = Slices::borrowed;
  ask_for_slices(kShortestNs);
}

void give_back_short_slices() {
  if (slices != Slices::borrowed) return;
  slices = Slices::usual;
  ask_for_slices(kUsual);
}

}  // namespace rondo::detail
