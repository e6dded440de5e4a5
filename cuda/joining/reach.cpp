#include "cuda/joining/reach.hpp"

#include <optional>

#include <fmt/format.h>

#include "base/index.hpp"
#include "base/put.hpp"
#include "bootstrap/together.hpp"
#include "cuda/joining/shown_memory.hpp"
#include "cuda/kernels/launch.hpp"

namespace rondo::detail::gpu {
namespace {

class ReachTest {
 public:
  ReachTest(Bootstrap& bootstrap, const GroupFacts& group, cuda::PeerAccess peer_access,
            const std::vector<ExposedLayout>& layouts, DeviceWiring& wiring)
      : bootstrap_(bootstrap),
        group_(group),
        peer_access_(peer_access),
        layouts_(layouts),
        wiring_(wiring),
        rank_(bootstrap.rank()),
        size_(bootstrap.size()),
        ways_(static_cast<std::size_t>(size_)),
        shown_(static_cast<std::size_t>(size_), nullptr) {}

  Reach run() {
    map_all();
    test_ways();
    return {std::move(shown_), bootstrap_.exchange_rows(ways_)};
  }

 private:
  // Maps all memory that can be reached.
  void map_all() {
    const std::vector<ShownMemory> shown_by =
        bootstrap_.exchange(show(wiring_.exposed, wiring_.device));
    // No rank releases its memory before all ranks have mapped it.
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      for (int rank = 0; rank < size_; ++rank) {
        const Index index(rank);
        try {
          shown_[index] = reach(rank, shown_by[index]);
        } catch (const CudaError& error) {
          put(ways_[index].reason, error.what());
        }
      }
    });
  }

  // Null, with a reason, where there is no way.
  std::byte* reach(int rank, const ShownMemory& theirs) {
    Way& way = ways_[Index(rank)];
    if (rank == rank_) return wiring_.exposed->data();
    if (!group_.hosts().same(rank, rank_)) return nullptr;
    if (peer_access_ == cuda::PeerAccess::avoided) {
      put(way.reason, "PeerAccess::avoided");
      return nullptr;
    }
    const bool same_process = group_.same_process(rank, rank_);
    if (same_process && !group_.same_device(rank, rank_)) {
      const int their_device = group_.of(rank).device_number;
      if (!api::can_reach(wiring_.device, their_device)) {
        put(way.reason, fmt::format("CUDA says that {} cannot reach {}", group_.device_of(rank_),
                                    group_.device_of(rank)));
        return nullptr;
      }
      api::enable_peer(their_device);
    }
    if (!group_.same_device(rank, rank_)) {
      const std::optional<int> here = group_.number_here(rank);
      way.lacks_atomics = here && !api::atomics_between(wiring_.device, *here);
    }
    return map(theirs, same_process, wiring_.device, wiring_.mapped);
  }

  // Every rank writes a pattern of its own into all memory that it reaches; then every rank checks
  // what has arrived in its own memory.
  void test_ways() {
    const auto row = [&](int owner, int writer) {
      return shown_[Index(owner)] + layout(owner).probes +
             static_cast<std::size_t>(writer) * kProbeWords * sizeof(std::uint64_t);
    };
    const auto seed = [&](int owner, int writer) {
      return 1 + static_cast<std::uint64_t>(owner) * static_cast<std::uint64_t>(size_) +
             static_cast<std::uint64_t>(writer);
    };
    OwnedStream stream;
    std::optional<DeviceMemory> counters;
    std::vector<std::uint64_t> wrong(static_cast<std::size_t>(size_));
    const std::size_t counters_bytes = wrong.size() * sizeof(wrong[0]);
    together(bootstrap_, [&] {
      stream = make_stream(wiring_.device);
      counters.emplace(wiring_.device, counters_bytes);
      const DeviceScope scope(wiring_.device);
      try {
        for (int rank = 0; rank < size_; ++rank) {
          if (shown_[Index(rank)] == nullptr) continue;
          kernels::write_pattern(row(rank, rank_), kProbeWords, seed(rank, rank_), stream.get());
        }
      } catch (const CudaError&) {
        // The other ranks give their memory back when they know that.
        api::wait_for(stream.get());
        throw;
      }
      api::wait_for(stream.get());
    });
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      auto* counter = reinterpret_cast<std::uint64_t*>(counters->data());
      for (int writer = 0; writer < size_; ++writer) {
        kernels::count_wrong_words(row(rank_, writer), kProbeWords, seed(rank_, writer),
                                   counter + writer, stream.get());
      }
      api::wait_for(stream.get());
      api::copy(wrong.data(), counter, counters_bytes);
    });
    const auto wrong_at = bootstrap_.exchange_rows(wrong);
    for (int rank = 0; rank < size_; ++rank) {
      const Index index(rank);
      if (shown_[index] == nullptr) continue;
      const std::uint64_t lost = wrong_at[index][Index(rank_)];
      ways_[index].works = lost == 0;
      if (lost != 0) {
        put(ways_[index].reason,
            fmt::format(
                "{} of {} words of a test pattern did not arrive (an IOMMU or PCIe ACS in the "
                "way?)",
                lost, kProbeWords));
      }
    }
  }

  [[nodiscard]] const ExposedLayout& layout(int rank) const { return layouts_[Index(rank)]; }

  Bootstrap& bootstrap_;
  const GroupFacts& group_;
  cuda::PeerAccess peer_access_;
  const std::vector<ExposedLayout>& layouts_;
  DeviceWiring& wiring_;
  int rank_;
  int size_;
  std::vector<Way> ways_;  // from this rank to each
  std::vector<std::byte*> shown_;
};

}  // namespace

Reach reach_others(Bootstrap& bootstrap, const GroupFacts& group, cuda::PeerAccess peer_access,
                   const std::vector<ExposedLayout>& layouts, DeviceWiring& wiring) {
  return ReachTest(bootstrap, group, peer_access, layouts, wiring).run();
}

}  // namespace rondo::detail::gpu
