#include "api/enqueue_turn.hpp"

#include <array>
#include <cstddef>

namespace rondo::detail::gpu {

std::unique_lock<std::mutex> turn_to_enqueue(int device) {
  // Devices beyond these share turns.
  constexpr std::size_t kDevices = 64;
  static std::array<std::mutex, kDevices> turns;
  return std::unique_lock(turns[static_cast<std::size_t>(device) % kDevices]);
}

}  // namespace rondo::detail::gpu
