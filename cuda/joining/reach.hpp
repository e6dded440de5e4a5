// Which ranks reach each other's device memory, found out by trying.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include <rondo/cuda.hpp>

#include "base/index.hpp"
#include "bootstrap/bootstrap.hpp"
#include "cuda/engine/device_wiring.hpp"
#include "cuda/engine/exposed_layout.hpp"
#include "cuda/joining/device_facts.hpp"

namespace rondo::detail::gpu {

// What a rank knows of its way to another's memory.
struct Way {
  bool works = false;
  // As far as its process can see: one device's atomic operations do not work on the other's
  // memory (PCIe).
  bool lacks_atomics = false;
  std::array<char, 160> reason{};  // why not
};

struct Reach {
  std::vector<std::byte*>
      shown;  // each rank's memory, as this rank reaches it; null where it does not
  std::vector<std::vector<Way>> ways;  // from each rank to each

  [[nodiscard]] const Way& way(int from, int to) const { return ways[Index(from)][Index(to)]; }
  // Between any two ranks.
  [[nodiscard]] bool lacks_atomics() const {
    return std::any_of(ways.begin(), ways.end(), [](const std::vector<Way>& row) {
      return std::any_of(row.begin(), row.end(), [](const Way& way) { return way.lacks_atomics; });
    });
  }
};

// Maps the memory that each rank shows (`wiring.exposed` on this rank) wherever CUDA allows it,
// writes a pattern into it and checks what has arrived. `wiring` keeps the mappings. `layouts`: by
// rank. Collective; throws CudaError on all ranks.
Reach reach_others(Bootstrap& bootstrap, const GroupFacts& group, cuda::PeerAccess peer_access,
                   const std::vector<ExposedLayout>& layouts, DeviceWiring& wiring);

}  // namespace rondo::detail::gpu
