#include "joining/rank_facts.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/put.hpp"
#include "base/random_number.hpp"
#include "carrier/peer_watch.hpp"
#include "topology/machine.hpp"

namespace rondo::detail {
namespace {

// Assumed as a core's L2 cache if its size is not known.
constexpr std::uint64_t kUsualL2Bytes = std::uint64_t{1} << 20U;

// The cores that this process may run on; its other threads may be bound to fewer.
decltype(RankFacts::cores) my_cores() {
  decltype(RankFacts::cores) cores{};
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines with more cores than the set can hold; those count as never crowded.
  if (::sched_getaffinity(::getpid(), sizeof(set), &set) != 0) {
    cores.fill(~std::uint64_t{0});
    return cores;
  }
  for (std::size_t core = 0; core < cores.size() * 64; ++core) {
    if (CPU_ISSET(core, &set)) cores[core / 64] |= std::uint64_t{1} << (core % 64);
  }
  return cores;
}

// Counts the cores of all `ranks` together: mpirun gives each rank its own cores, a container gives
// all the same.
std::size_t cores_of(const std::vector<RankFacts>& ranks) {
  std::size_t count = 0;
  for (std::size_t word = 0; word < ranks[0].cores.size(); ++word) {
    std::uint64_t any = 0;
    for (const RankFacts& rank : ranks) any |= rank.cores[word];
    count += static_cast<std::size_t>(std::popcount(any));
  }
  return std::max<std::size_t>(count, 1);
}

// A machine's caches do not change, and asking for them takes milliseconds.
std::uint64_t l2_bytes() {
  static const std::uint64_t bytes = this_machine().l2_bytes;
  return bytes == 0 ? kUsualL2Bytes : bytes;
}

// The same for two ranks if they run on one host.
std::string host_key(const RankFacts& rank) {
  return fmt::format("{} {}", rank.host.data(), rank.boot.data());
}

}  // namespace

RankFacts my_facts(const CommunicatorOptions& options) {
  RankFacts facts;
  put(facts.host, host_name());
  try {
    put(facts.boot, machine_boot_id());
  } catch (const TransportError& error) {
    put(facts.refusal, error.what());
  }
  facts.session = random_number();
  facts.process_namespace = process_namespace();
  facts.process_id = ::getpid();
  facts.numa_node = bound_numa_node();
  facts.l2_bytes = l2_bytes();
  facts.cores = my_cores();
  facts.core_quota = core_quota().value_or(CoreQuota());
  facts.slots = options.slots;
  facts.slot_bytes = options.slot_bytes;
  facts.carrier = options.carrier;
  facts.rank_order = options.rank_order;
  return facts;
}

void require_all_can_join(const std::vector<RankFacts>& facts) {
  for (std::size_t rank = 0; rank < facts.size(); ++rank) {
    if (facts[rank].refusal[0] == '\0') continue;
    throw UsageError(fmt::format("rank {}: {}", rank, facts[rank].refusal.data()));
  }
  for (std::size_t rank = 1; rank < facts.size(); ++rank) {
    const RankFacts& a = facts[0];
    const RankFacts& b = facts[rank];
    if (a.slot_bytes == b.slot_bytes && a.slots == b.slots && a.carrier == b.carrier &&
        a.rank_order == b.rank_order) {
      continue;
    }
    throw UsageError(fmt::format(
        "rank 0 and rank {} were given different CommunicatorOptions: slot_bytes {} and {}, slots "
        "{} and {}, carrier {} and {}, rank_order {} and {}; they must be the same on all ranks",
        rank, a.slot_bytes, b.slot_bytes, a.slots, b.slots, static_cast<int>(a.carrier),
        static_cast<int>(b.carrier), a.rank_order, b.rank_order));
  }
}

std::vector<RankPlace> places_of(const std::vector<RankFacts>& facts) {
  std::vector<RankPlace> places;
  for (const RankFacts& rank : facts) {
    const std::uint64_t id = host_id(rank.host.data(), rank.boot.data());
    places.push_back({rank.host.data(), static_cast<int>(rank.process_id), rank.numa_node, {}, id});
  }
  return places;
}

std::vector<OrderKey> order_keys(const std::vector<RankFacts>& facts) {
  std::vector<OrderKey> keys;
  for (const RankFacts& rank : facts) {
    keys.push_back({host_key(rank), rank.numa_node});
  }
  return keys;
}

Hosts hosts_of(const std::vector<RankFacts>& facts) {
  std::vector<std::string> names;
  for (const OrderKey& key : order_keys(facts)) names.push_back(key.host);
  return Hosts(std::move(names));
}

bool Hosts::all_on_one() const {
  return std::all_of(names_.begin(), names_.end(),
                     [this](const std::string& name) { return name == names_[0]; });
}

std::vector<int> Hosts::ranks_with(int of) const {
  std::vector<int> ranks;
  for (int rank = 0; rank < size(); ++rank) {
    if (same(rank, of)) ranks.push_back(rank);
  }
  return ranks;
}

std::uint64_t non_temporal_bytes(const RankFacts& rank) { return 2 * rank.l2_bytes; }

std::uint64_t cache_share_bytes(const std::vector<RankFacts>& ranks_of_host) {
  const std::size_t cores = cores_of(ranks_of_host);
  const std::size_t ranks_a_core = (ranks_of_host.size() + cores - 1) / cores;
  return ranks_of_host[0].l2_bytes / ranks_a_core;
}

bool crowded(const std::vector<RankFacts>& ranks_of_host) {
  return ranks_of_host.size() > cores_of(ranks_of_host);
}

bool share_cores(const std::vector<RankFacts>& facts) {
  std::map<std::string, std::vector<RankFacts>> machines;
  for (const RankFacts& rank : facts) machines[rank.boot.data()].push_back(rank);
  return std::any_of(machines.begin(), machines.end(),
                     [](const auto& machine) { return crowded(machine.second); });
}

bool short_of_quota(const std::vector<RankFacts>& ranks_of_host) {
  return std::any_of(ranks_of_host.begin(), ranks_of_host.end(), [&](const RankFacts& rank) {
    const auto ranks =
        std::count_if(ranks_of_host.begin(), ranks_of_host.end(), [&](const RankFacts& other) {
          return other.core_quota.group == rank.core_quota.group && other.core_quota.millicores > 0;
        });
    return rank.core_quota.millicores > 0 && 1000 * ranks > rank.core_quota.millicores;
  });
}

}  // namespace rondo::detail
