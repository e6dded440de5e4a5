#include "cuda/joining/device_facts.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/index.hpp"
#include "base/log.hpp"
#include "cuda/engine/call_arguments.hpp"
#include "cuda/kernels/launch.hpp"
#include "joining/fifo_sizes.hpp"
#include "topology/machine.hpp"

namespace rondo::detail::gpu {
namespace {

// Two blocks of this size fit a multiprocessor of 65536 registers, so that one moves while the
// other waits.
constexpr int kDefaultThreads = 256;
constexpr int kMostChannels = 256;
// Chosen when each rank has a device of its own: enough to keep a link busy, and most of the device
// free for the program.
constexpr int kChannelsOfOwnDevice = 64;
constexpr int kChannelsOfSharedDevice = 128;
constexpr int kOffRingChannels = 8;
constexpr int kNetworkChannels = 2;
constexpr int kMostPairwiseChannels = 16;
// All slots of a device's ranks stay in its L2.
constexpr FifoGeometry kOneDeviceGeometry{std::uint64_t{32} * 1024, 4};
constexpr FifoGeometry kLinkGeometry{std::uint64_t{64} * 1024, 8};
constexpr FifoGeometry kNetworkGeometry{std::uint64_t{32} * 1024, 16};
constexpr FifoGeometry kPairwiseGeometry{std::uint64_t{32} * 1024, 4};
// The limit for all pairwise FIFOs that lead to a rank from ranks of its host.
constexpr std::uint64_t kMostPairwiseBytes = std::uint64_t{32} << 20U;
constexpr std::uint64_t kOneShotBytes = 65536;
// Between ranks of one device one_shot was the fastest up to this size on an H200, with 2 and with
// 4 ranks (docs/gpu.md).
constexpr std::uint64_t kOneShotBytesOfOneDevice = std::uint64_t{256} * 1024;
constexpr std::uint64_t kMostOneShotBytes = std::uint64_t{1} << 20U;
// The inbox of every rank has room for every other rank.
constexpr int kMostOneShotRanks = 16;

template <class... Args>
void require(bool good, fmt::format_string<Args...> format, Args&&... args) {
  if (!good) throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

void validate_options(const cuda::Options& options) {
  require(options.device >= cuda::kSpreadOverDevices,
          "cuda::Options::device is {}; it must be a device's number, kCurrentDevice or "
          "kSpreadOverDevices",
          options.device);
  require(options.peer_access <= cuda::PeerAccess::avoided,
          "cuda::Options::peer_access is not a PeerAccess");
  require(options.channels >= 0 && options.channels <= kMostChannels,
          "cuda::Options::channels is {}; it must be 0 to {}", options.channels, kMostChannels);
  require(options.threads >= 0 && options.threads <= kMostThreads && options.threads % 32 == 0,
          "cuda::Options::threads is {}; it must be a multiple of 32 up to {}, or 0",
          options.threads, kMostThreads);
  require(options.one_shot_bytes.value_or(0) <= kMostOneShotBytes,
          "cuda::Options::one_shot_bytes is {}; it must be 0 to {}",
          options.one_shot_bytes.value_or(0), kMostOneShotBytes);
  validate_fifo_size("cuda::Options", options.slot_bytes, options.slots);
}

int device_for(const cuda::Options& options, int index) {
  const int count = api::device_count();
  if (count == 0) throw CudaError(fmt::format("there is no CUDA device: {}", api::why_no_device()));
  if (options.device == cuda::kCurrentDevice) return api::current_device();
  if (options.device == cuda::kSpreadOverDevices) return index % count;
  require(options.device < count, "cuda::Options::device is {}, but this process sees {} devices",
          options.device, count);
  return options.device;
}

DeviceRankFacts facts_of_this_rank(const cuda::Options& options, int device, int size) {
  DeviceRankFacts facts;
  facts.place = my_facts({});
  facts.device = api::facts_of(device);
  facts.device_number = device;
  facts.channels = options.channels;
  facts.threads = options.threads == 0 ? kDefaultThreads : options.threads;
  facts.slots = options.slots;
  facts.slot_bytes = options.slot_bytes;
  facts.one_shot_bytes = options.one_shot_bytes.value_or(kChosenLater);
  facts.peer_access = options.peer_access;
  facts.connections = environment_device_connections();
  facts.resident_blocks = kernels::resident_blocks(facts.threads, size);
  return facts;
}

GroupFacts::GroupFacts(std::vector<DeviceRankFacts> facts) : facts_(std::move(facts)) {
  std::vector<RankFacts> places;
  for (const DeviceRankFacts& rank : facts_) places.push_back(rank.place);
  hosts_ = hosts_of(places);
}

bool GroupFacts::same_process(int a, int b) const {
  return hosts_.same(a, b) && of(a).place.process_namespace == of(b).place.process_namespace &&
         of(a).place.process_id == of(b).place.process_id;
}

bool GroupFacts::same_device(int a, int b) const {
  return hosts_.same(a, b) && of(a).device.uuid == of(b).device.uuid;
}

std::optional<int> GroupFacts::number_here(int rank) const {
  for (int device = 0; device < api::device_count(); ++device) {
    if (api::facts_of(device).uuid == of(rank).device.uuid) return device;
  }
  return std::nullopt;
}

std::string GroupFacts::device_of(int rank) const {
  const DeviceRankFacts& facts = of(rank);
  return fmt::format("GPU {} ({}, {})", facts.device_number, facts.device.name.data(),
                     facts.device.pci_bus.data());
}

std::vector<RankPlace> GroupFacts::places() const {
  std::vector<RankFacts> all;
  for (const DeviceRankFacts& rank : facts_) all.push_back(rank.place);
  std::vector<RankPlace> places = places_of(all);
  for (int rank = 0; rank < size(); ++rank) {
    places[Index(rank)].device = device_of(rank);
  }
  return places;
}

void GroupFacts::require_equal_options() const {
  const DeviceRankFacts& first = of(0);
  for (int rank = 1; rank < size(); ++rank) {
    const DeviceRankFacts& other = of(rank);
    const auto differ = [&](const char* which, const auto& a, const auto& b) {
      require(
          a == b,
          "rank 0 and rank {} were given different cuda::Options: {} {} and {}; all but `device` "
          "must be the same on all ranks",
          rank, which, a, b);
    };
    differ("channels", static_cast<std::uint64_t>(first.channels),
           static_cast<std::uint64_t>(other.channels));
    differ("threads", static_cast<std::uint64_t>(first.threads),
           static_cast<std::uint64_t>(other.threads));
    differ("slots", first.slots, other.slots);
    differ("slot_bytes", first.slot_bytes, other.slot_bytes);
    const auto one_shot = [](const DeviceRankFacts& facts) {
      return facts.one_shot_bytes == kChosenLater ? "unset" : std::to_string(facts.one_shot_bytes);
    };
    differ("one_shot_bytes", one_shot(first), one_shot(other));
    differ("peer_access", static_cast<std::uint64_t>(first.peer_access),
           static_cast<std::uint64_t>(other.peer_access));
  }
}

std::vector<int> GroupFacts::ranks_on_device_of(int rank) const {
  std::vector<int> ranks;
  for (int other = 0; other < size(); ++other) {
    if (same_device(rank, other)) ranks.push_back(other);
  }
  return ranks;
}

// Kernels of one rank spin until those of the others have run: all must be on the device at once.
void GroupFacts::require_residency(int blocks) const {
  for (int rank = 0; rank < size(); ++rank) {
    const auto ranks = static_cast<int>(ranks_on_device_of(rank).size());
    const int room = of(rank).resident_blocks;
    require(
        ranks * blocks <= room,
        "{} ranks of {} blocks (one for each channel; at least 2) do not fit on {} of rank {}: it "
        "runs {} blocks of {} threads at once. Choose fewer channels, fewer threads, or fewer "
        "ranks on a device",
        ranks, blocks, device_of(rank), rank, room, of(rank).threads);
  }
}

// With more streams than connections, two ranks' streams share a queue, and a call of one rank may
// be queued behind a later call of the other rank, which waits for it.
void GroupFacts::require_connections() const {
  for (int rank = 0; rank < size(); ++rank) {
    int in_process = 0;
    for (const int other : ranks_on_device_of(rank))
      in_process += same_process(rank, other) ? 1 : 0;
    require(
        in_process < of(rank).connections,
        "{} ranks of one process share {}, and with the default stream they need more than CUDA's "
        "{} "
        "connections to a device; set the environment variable CUDA_DEVICE_MAX_CONNECTIONS to 32 "
        "before the program starts",
        in_process, device_of(rank), of(rank).connections);
  }
}

// CUDA loads a kernel of the program's when it is launched first, and may let that wait for the
// kernels that run.
void GroupFacts::warn_of_lazy_loading(int rank) const {
  const std::vector<int> sharing = ranks_on_device_of(rank);
  const auto first = std::find_if(sharing.begin(), sharing.end(),
                                  [&](int other) { return same_process(rank, other); });
  const bool is_shared =
      std::count_if(first, sharing.end(), [&](int other) { return same_process(rank, other); }) > 1;
  if (!is_shared || *first != rank) return;  // one of them says so
  if (environment_of_others("CUDA_MODULE_LOADING") == "EAGER") return;
  log(LogLevel::warning,
      "rank {}: ranks of this process share {}: a kernel of the program's that CUDA has not loaded "
      "yet may wait there for a call, which waits for the program. Set CUDA_MODULE_LOADING to "
      "EAGER "
      "before the program starts, or launch each kernel once before the first call",
      rank, device_of(rank));
}

// `channels`: those of the ring within a host.
void GroupFacts::set_pairwise(DeviceGeometry& geometry, int channels) const {
  std::uint64_t peers = 1;
  for (int rank = 0; rank < size(); ++rank) {
    geometry.hosts.push_back(hosts_.lowest_rank_with(rank));
    peers = std::max<std::uint64_t>(peers, hosts_.ranks_with(rank).size());
  }
  geometry.pairwise = kPairwiseGeometry;
  if (of(0).slot_bytes != 0) geometry.pairwise.slot_bytes = of(0).slot_bytes;
  if (of(0).slots != 0) geometry.pairwise.slots = of(0).slots;
  geometry.pairwise = within_limit(geometry.pairwise, peers, kMostPairwiseBytes);
  const std::uint64_t room = kMostPairwiseBytes / (peers * slots_bytes(geometry.pairwise));
  const int most = std::clamp(channels / 2, 1, kMostPairwiseChannels);
  geometry.pairwise_channels =
      static_cast<int>(std::clamp<std::uint64_t>(room, 1, static_cast<std::uint64_t>(most)));
}

std::uint64_t GroupFacts::one_shot_bytes() const {
  if (of(0).one_shot_bytes != kChosenLater) return of(0).one_shot_bytes;
  return ranks_on_device_of(0).size() == facts_.size() ? kOneShotBytesOfOneDevice : kOneShotBytes;
}

DeviceGeometry GroupFacts::choose_geometry() const {
  const bool leaves_host = !hosts_.all_on_one();
  DeviceGeometry geometry;
  geometry.size = size();
  int channels = kMostChannels;
  bool one_device = true;
  for (int rank = 0; rank < size(); ++rank) {
    const auto sharing = static_cast<int>(ranks_on_device_of(rank).size());
    one_device = one_device && sharing == size();
    const int most = sharing == 1 ? kChannelsOfOwnDevice : kChannelsOfSharedDevice;
    channels = std::min({channels, most, of(rank).resident_blocks / sharing});
  }
  if (of(0).channels != 0) channels = of(0).channels;
  set_pairwise(geometry, channels);
  if (leaves_host && of(0).channels == 0) channels = std::min(channels, kNetworkChannels);
  geometry.channels = std::max(channels, 1);
  geometry.off_ring_channels = std::min(geometry.channels, kOffRingChannels);
  require_residency(geometry.blocks());
  require_connections();
  geometry.ring = leaves_host ? kNetworkGeometry : one_device ? kOneDeviceGeometry : kLinkGeometry;
  if (of(0).slot_bytes != 0) geometry.ring.slot_bytes = of(0).slot_bytes;
  if (of(0).slots != 0) geometry.ring.slots = of(0).slots;
  geometry.off_ring = geometry.ring;
  const bool one_shot =
      one_shot_bytes() > 0 && !leaves_host && size() > 1 && size() <= kMostOneShotRanks;
  geometry.has_posts = !leaves_host && size() > 1;
  if (one_shot) geometry.inbox_units = inbox_units_for(one_shot_bytes(), geometry.channels);
  return geometry;
}

std::vector<DeviceLink> links_of(const GroupFacts& group, int rank) {
  const int mine = group.of(rank).device_number;
  std::vector<DeviceLink> links;
  for (int other = 0; other < group.size(); ++other) {
    if (!group.hosts().same(rank, other)) {
      links.push_back(DeviceLink::network);
      continue;
    }
    if (group.same_device(rank, other)) {
      links.push_back(DeviceLink::same_device);
      continue;
    }
    const std::optional<int> theirs = group.number_here(other);
    // Atomics work over NVLink, and not over PCIe.
    const bool nvlink =
        theirs && api::can_reach(mine, *theirs) && api::atomics_between(mine, *theirs);
    links.push_back(nvlink ? DeviceLink::nvlink
                           : pci_link(group.of(rank).device.pci_bus.data(),
                                      group.of(other).device.pci_bus.data()));
  }
  return links;
}

}  // namespace rondo::detail::gpu
