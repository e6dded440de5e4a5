// What each rank sends to the others about itself while they join, and what every rank computes
// from that, with the same result.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <rondo/options.hpp>
#include <rondo/topology.hpp>

#include "base/index.hpp"
#include "topology/core_quota.hpp"
#include "topology/ring_order.hpp"

namespace rondo::detail {

// It has a fixed size, since it travels as bytes.
struct RankFacts {
  std::array<char, 256> host{};
  std::array<char, 64> boot{};
  std::uint64_t session = 0;  // random; rank 0's is the communicator's
  std::uint64_t process_namespace = 0;
  std::int64_t process_id = 0;
  std::uint64_t life = 0;  // carrier/life_sign.hpp
  std::int32_t numa_node = -1;
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t l2_bytes = 0;             // a core's own cache
  std::array<std::uint64_t, 16> cores{};  // one bit for each core that the rank may run on
  CoreQuota core_quota;                   // 0 millicores: there is none
  CarrierChoice carrier = CarrierChoice::automatic;
  bool rank_order = false;
  std::array<char, 512> refusal{};  // why this rank cannot join; empty if it can
};

RankFacts my_facts(const CommunicatorOptions& options);

// Throws UsageError if some rank cannot join, of which it names the lowest; or if slots,
// slot_bytes, carrier or rank_order differ from rank 0's. All ranks have the same facts, so all
// throw alike.
void require_all_can_join(const std::vector<RankFacts>& facts);

std::vector<RankPlace> places_of(const std::vector<RankFacts>& facts);
// Returns what the order of the ring depends on.
std::vector<OrderKey> order_keys(const std::vector<RankFacts>& facts);

// Which ranks are on which host.
class Hosts {
 public:
  Hosts() = default;
  // `names`: by rank, the same for ranks of one host.
  explicit Hosts(std::vector<std::string> names) : names_(std::move(names)) {}

  [[nodiscard]] int size() const { return static_cast<int>(names_.size()); }
  [[nodiscard]] bool same(int a, int b) const { return names_[Index(a)] == names_[Index(b)]; }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool all_on_one() const;
  // Returns the ranks on the host of rank `of`, in order.
  [[nodiscard]] std::vector<int> ranks_with(int of) const;
  [[nodiscard]] int lowest_rank_with(int of) const { return ranks_with(of).front(); }

 private:
  std::vector<std::string> names_;
};

// Two ranks share a host if its name and the time at which the machine was started are the same.
Hosts hosts_of(const std::vector<RankFacts>& facts);

// Outputs from this size on are written with non-temporal stores: they would leave no room in the
// rank's cache. Measured: docs/performance.md.
std::uint64_t non_temporal_bytes(const RankFacts& rank);
// Returns each rank's share of a core's cache, when these ranks share a host.
std::uint64_t cache_share_bytes(const std::vector<RankFacts>& ranks_of_host);
// Whether these ranks, which share a host, are more than the cores that they may run on.
bool crowded(const std::vector<RankFacts>& ranks_of_host);
// Whether on some machine there are more ranks than cores, whatever hosts (containers) they are on.
bool share_cores(const std::vector<RankFacts>& facts);
// Whether some of them are more than the cores that their control group may use.
bool short_of_quota(const std::vector<RankFacts>& ranks_of_host);

}  // namespace rondo::detail
