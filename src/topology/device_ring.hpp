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

// Ranks of one host are neighbours, and hosts are in the order of their lowest rank. Up to 8 ranks
// of a host are in the best order: with the fewest links of the slowest kind, then the fewest of
// the next kind, and so on. With more ranks, each rank is followed by the nearest of those that are
// left. `links[a][b]` for every two ranks; `hosts` by rank.
std::vector<int> device_ring(const std::vector<std::string>& hosts,
                             const std::vector<std::vector<DeviceLink>>& links);

}  // namespace rondo::detail
