#include "cuda/api/enqueue_turn.hpp"

#include <array>
#include <cstddef>

#include "base/index.hpp"

namespace rondo::detail::gpu {

std::unique_lock<std::mutex> turn_to_enqueue(int device) {
  // Devices beyond these share turns.
  constexpr std::size_t kDevices = 64;
  static std::array<std::mutex, kDevices> turns;
  return std::unique_lock(turns[Index(device) % kDevices]);
}

}  // namespace rondo::detail::gpu
