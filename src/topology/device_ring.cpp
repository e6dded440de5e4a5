#include "topology/device_ring.hpp"

#include <algorithm>
#include <array>

#include "base/index.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kMostPermuted = 8;

using Links = std::vector<std::vector<DeviceLink>>;

DeviceLink between(const Links& links, int a, int b) { return links[Index(a)][Index(b)]; }

// How many links of each kind a path has, the slowest kind first: smaller is better.
std::array<int, 8> cost_of(const std::vector<int>& path, const Links& links, bool closed) {
  std::array<int, 8> cost{};
  const std::size_t steps = path.size() - (closed ? 0 : 1);
  for (std::size_t i = 0; i < steps; ++i) {
    const DeviceLink link = between(links, path[i], path[(i + 1) % path.size()]);
    ++cost[cost.size() - 1 - static_cast<std::size_t>(link)];
  }
  return cost;
}

// Chooses the cheapest of all orders that begin with the first rank.
void order_by_cost(std::vector<int>& ranks, const Links& links, bool closed) {
  std::vector<int> tried = ranks;
  while (std::next_permutation(tried.begin() + 1, tried.end())) {
    if (cost_of(tried, links, closed) < cost_of(ranks, links, closed)) ranks = tried;
  }
}

// Starts with the first rank; each rank is followed by the nearest of the ranks that are left.
void order_by_nearest(std::vector<int>& ranks, const Links& links) {
  for (auto last = ranks.begin(); last + 1 < ranks.end(); ++last) {
    const auto nearest = std::min_element(last + 1, ranks.end(), [&](int a, int b) {
      return between(links, *last, a) < between(links, *last, b);
    });
    std::rotate(last + 1, nearest, nearest + 1);
  }
}

}  // namespace

std::string_view name(DeviceLink link) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "one device", "NVLink",      "a PCIe switch",  "a host bridge",
      "one socket", "two sockets", "an unknown way", "a network"};
  return kNames[Index(link)];
}

std::vector<int> device_ring(const std::vector<std::string>& hosts, const Links& links) {
  std::vector<int> ring;
  std::vector<bool> done(hosts.size(), false);
  for (std::size_t leader = 0; leader < hosts.size(); ++leader) {
    if (done[leader]) continue;
    std::vector<int> here;
    for (std::size_t rank = leader; rank < hosts.size(); ++rank) {
      if (hosts[rank] != hosts[leader]) continue;
      here.push_back(static_cast<int>(rank));
      done[rank] = true;
    }
    const bool closed = here.size() == hosts.size();
    if (here.size() <= kMostPermuted) {
      order_by_cost(here, links, closed);
    } else {
      order_by_nearest(here, links);
    }
    ring.insert(ring.end(), here.begin(), here.end());
  }
  return ring;
}

}  // namespace rondo::detail
