#include "communicator/wiring_parts.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <random>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "communicator/wiring.hpp"
#include "topology/machine.hpp"

namespace rondo::detail {
namespace {

constexpr std::uint32_t kShmSlots = 8;
// Rank 0 answers all ranks of `naive` at once: of long windows all get the end of theirs last, and none sends the
// next meanwhile.
constexpr std::uint32_t kStarSlots = 8;
constexpr std::uint32_t kLeastLinkSlots = 16;
constexpr std::uint32_t kMostLinkSlots = 64;
// Only naive and recursive_doubling use these edges, of which a rank may have many.
constexpr std::uint64_t kMostStarSlotBytes = std::uint64_t{32} << 10U;
// For all edges of a kind within a host. With the boxes of one_shot, at most 1 MiB, and what ranks show each other
// they stay within 24 MiB, also for 128 ranks.
constexpr std::uint64_t kMostRingBytes = std::uint64_t{12} << 20U;
constexpr std::uint64_t kMostStarBytes = std::uint64_t{8} << 20U;
constexpr std::uint64_t kLeastSlotBytes = 512;
// A core's cache where hwloc knows of none.
constexpr std::uint64_t kUsualL2Bytes = std::uint64_t{1} << 20U;

// Changes with every start of the machine, so that equal host names on two machines stay apart.
std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

// Those of this process, whose other threads may be bound more narrowly.
decltype(RankFacts::cores) my_cores() {
  decltype(RankFacts::cores) cores{};
  cpu_set_t set;
  CPU_ZERO(&set);
  // Fails on machines of more cores than the set holds; they are never crowded.
  if (::sched_getaffinity(::getpid(), sizeof(set), &set) != 0) {
    cores.fill(~std::uint64_t{0});
    return cores;
  }
  for (std::size_t core = 0; core < cores.size() * 64; ++core) {
    if (CPU_ISSET(core, &set)) cores[core / 64] |= std::uint64_t{1} << (core % 64);
  }
  return cores;
}

// mpirun gives each rank cores of its own, a container gives the same to all.
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

}  // namespace

std::size_t one_shot_limit_bytes(int size) {
  constexpr std::size_t kMost = std::size_t{64} << 10U;
  constexpr std::size_t kMostReadByARank = std::size_t{512} << 10U;
  return std::min(kMost, kMostReadByARank / static_cast<std::size_t>(size) / 64 * 64);
}

void validate_fifo_size(const char* options, std::size_t slot_bytes, std::uint32_t slots) {
  constexpr std::size_t kLargestSlot = std::size_t{1} << 30U;
  if (slot_bytes % 64 != 0 || slot_bytes > kLargestSlot) {
    throw UsageError(
        fmt::format("{}::slot_bytes is {}; it must be a multiple of 64 up to 1 GiB, or 0", options,
                    slot_bytes));
  }
  if (slots == 1 || slots > 4096) {
    throw UsageError(fmt::format(
        "{}::slots is {}; it must be 2 to 4096, or 0: a rank holds one slot while it waits for the "
        "next",
        options, slots));
  }
}

void validate_geometry(const CommunicatorOptions& options) {
  validate_fifo_size("CommunicatorOptions", options.slot_bytes, options.slots);
  if (options.carrier > CarrierChoice::mpi) {
    throw UsageError("CommunicatorOptions::carrier is not a CarrierChoice");
  }
}

namespace {

// The slots of both neighbours take half of a core's cache, and leave half to the buffers that they are
// combined with.
FifoGeometry shm_geometry(std::uint64_t cache_bytes) {
  const std::uint64_t share = cache_bytes / 2 / 2 / kShmSlots;
  return {std::clamp<std::uint64_t>(std::bit_floor(share), std::uint64_t{4} << 10U,
                                    std::uint64_t{256} << 10U),
          kShmSlots};
}

// A slice takes longer on the link than a nap of those who wait for it, so that its own cost, a few µs, is
// small beside it. As many slots as keep the link busy for several naps and its latency; the pump of a rank
// that has nothing to do looks no more often.
FifoGeometry link_geometry(const LinkFacts& link) {
  constexpr double kSliceUs = 200;
  constexpr double kUnderWayUs = 1000;
  const auto wanted = static_cast<std::uint64_t>(link.bytes_per_us * kSliceUs);
  const std::uint64_t slot_bytes = std::clamp<std::uint64_t>(
      std::bit_ceil(wanted), std::uint64_t{8} << 10U, std::uint64_t{128} << 10U);
  const double under_way = link.bytes_per_us * (kUnderWayUs + 2 * link.latency_us);
  const auto slots = static_cast<std::uint64_t>(under_way / static_cast<double>(slot_bytes)) * 2;
  return {slot_bytes, static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
                          std::bit_ceil(slots), kLeastLinkSlots, kMostLinkSlots))};
}

std::uint64_t slot_limit(std::uint64_t all_bytes, std::uint64_t edges, std::uint32_t slots) {
  return std::max(kLeastSlotBytes,
                  std::bit_floor(all_bytes / std::max<std::uint64_t>(edges * slots, 1)));
}

}  // namespace

std::chrono::microseconds nap_for(const LinkFacts& link, const FifoGeometry& ring) {
  constexpr double kShortestUs = 60;
  constexpr double kLongestUs = 150;
  const double slice_us = static_cast<double>(ring.slot_bytes) / link.bytes_per_us;
  if (slice_us < kShortestUs) return {};
  return std::chrono::microseconds(static_cast<int>(std::min(slice_us, kLongestUs)));
}

Geometries choose_geometries(const CommunicatorOptions& options, std::uint64_t cache_bytes,
                             const std::optional<LinkFacts>& link, const LocalEdges& local) {
  FifoGeometry ring = link ? link_geometry(*link) : shm_geometry(cache_bytes);
  ring.slot_bytes = std::min(ring.slot_bytes, slot_limit(kMostRingBytes, local.ring, kShmSlots));
  FifoGeometry star = ring;
  if (link) star = {std::min(ring.slot_bytes, kMostStarSlotBytes), kStarSlots};
  star.slot_bytes = std::min(star.slot_bytes, slot_limit(kMostStarBytes, local.star, star.slots));
  Geometries chosen;
  chosen.link = {ring, star};
  chosen.memory = chosen.link;
  chosen.memory.ring.slots = kShmSlots;
  for (EdgeGeometries* edges : {&chosen.memory, &chosen.link}) {
    for (FifoGeometry* geometry : {&edges->ring, &edges->star}) {
      if (options.slot_bytes != 0) geometry->slot_bytes = options.slot_bytes;
      if (options.slots != 0) geometry->slots = options.slots;
    }
  }
  return chosen;
}

std::vector<SegmentEdge> with_geometry(const std::vector<ScheduleEdge>& edges,
                                       const EdgeGeometries& memory) {
  std::vector<SegmentEdge> result;
  for (const ScheduleEdge& edge : edges) {
    result.push_back({edge.ranks, memory.of(edge.in_ring())});
  }
  return result;
}

std::vector<RankPlace> places_of(const std::vector<RankFacts>& facts) {
  std::vector<RankPlace> places;
  for (const RankFacts& rank : facts) {
    places.push_back({rank.host.data(), static_cast<int>(rank.process_id), rank.numa_node, {}});
  }
  return places;
}

std::vector<Place> order_keys(const std::vector<RankFacts>& facts) {
  std::vector<Place> keys;
  for (const RankFacts& rank : facts) {
    keys.push_back({fmt::format("{} {}", rank.host.data(), rank.boot.data()), rank.numa_node});
  }
  return keys;
}

std::vector<std::size_t> positions_of(const std::vector<int>& ring) {
  std::vector<std::size_t> positions(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i) positions[static_cast<std::size_t>(ring[i])] = i;
  return positions;
}

void connect_segment(Wiring& wiring, const std::vector<SegmentEdge>& edges) {
  const auto position = positions_of(wiring.topology.ring);
  for (const int rank : wiring.ranks_sharing) {
    if (rank == wiring.rank) continue;
    wiring.bells[position[static_cast<std::size_t>(rank)]] = &wiring.segment->bell(rank);
  }
  for (const auto& [edge, geometry] : edges) {
    const auto fifo = wiring.segment->fifo(edge);
    if (!fifo) continue;
    if (edge.from == wiring.rank) {
      wiring.to[position[static_cast<std::size_t>(edge.to)]] = SendEnd(*fifo);
    }
    if (edge.to == wiring.rank) {
      wiring.from[position[static_cast<std::size_t>(edge.from)]] = RecvEnd(*fifo);
    }
  }
}

Wiring empty_wiring(int rank, int size, std::vector<int> ring) {
  Wiring wiring;
  wiring.rank = rank;
  wiring.size = size;
  wiring.topology.ring = std::move(ring);
  wiring.to.resize(static_cast<std::size_t>(size));
  wiring.from.resize(static_cast<std::size_t>(size));
  wiring.bells.resize(static_cast<std::size_t>(size));
  return wiring;
}

std::uint64_t streaming_bytes(const RankFacts& rank) { return 2 * rank.l2_bytes; }

std::uint64_t cache_share_bytes(const std::vector<RankFacts>& ranks_of_host) {
  const std::size_t cores = cores_of(ranks_of_host);
  const std::size_t ranks_a_core = (ranks_of_host.size() + cores - 1) / cores;
  return ranks_of_host[0].l2_bytes / ranks_a_core;
}

bool crowded(const std::vector<RankFacts>& ranks_of_host) {
  return ranks_of_host.size() > cores_of(ranks_of_host);
}

RankFacts my_facts(const CommunicatorOptions& options) {
  RankFacts facts;
  put(facts.host, host_name());
  put(facts.boot, boot_id());
  facts.session = (std::uint64_t{std::random_device()()} << 32U) | std::random_device()();
  facts.process_namespace = process_namespace();
  facts.process_id = ::getpid();
  facts.numa_node = bound_numa_node();
  facts.l2_bytes = l2_bytes();
  facts.cores = my_cores();
  facts.slots = options.slots;
  facts.slot_bytes = options.slot_bytes;
  facts.carrier = options.carrier;
  return facts;
}

}  // namespace rondo::detail
