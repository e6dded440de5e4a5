// In which order the ring visits ranks that have devices.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rondo::detail {

// What lies between two ranks' devices, the fastest first.
enum class DeviceLink : std::uint8_t {
  same_device,
  nvlink,
  pci_switch,
  host_bridge,
  package,
  machine,
  unknown,
  network
};
std::string_view name(DeviceLink link);

// Ranks of one host are neighbours, hosts in the order of their lowest rank. Within a host the order
// with the fewest of the slowest links, then the fewest of the next, and so on: the best there is for
// up to 8 ranks; beyond, each rank is followed by the nearest that is left. `links[a][b]` for every
// two ranks; `hosts` by rank.
std::vector<int> device_ring(const std::vector<std::string>& hosts,
                             const std::vector<std::vector<DeviceLink>>& links);

}  // namespace rondo::detail
