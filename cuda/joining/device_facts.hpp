// The facts on ranks and devices that ranks exchange, and what all ranks derive from them alike.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rondo/cuda.hpp>

#include "base/index.hpp"
#include "cuda/api/api.hpp"
#include "cuda/engine/exposed_layout.hpp"
#include "joining/rank_facts.hpp"
#include "topology/device_ring.hpp"

namespace rondo::detail::gpu {

// Fixed size: it travels as bytes.
struct DeviceRankFacts {
  RankFacts place;
  api::DeviceFacts device;
  std::int32_t device_number = 0;
  std::int32_t resident_blocks = 0;  // of a ring's kernels, on the whole device
  std::int32_t connections = 0;      // CUDA_DEVICE_MAX_CONNECTIONS
  // Options; the same on all ranks.
  std::int32_t channels = 0;
  std::int32_t threads = 0;
  std::uint32_t slots = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t one_shot_bytes = 0;  // kChosenLater: the option is unset
  cuda::PeerAccess peer_access = cuda::PeerAccess::automatic;
};

inline constexpr std::uint64_t kChosenLater = UINT64_MAX;

// Throws UsageError for options out of range.
void validate_options(const cuda::Options& options);

// The device that the options mean, for the rank with number `index` among those of its host.
int device_for(const cuda::Options& options, int index);

DeviceRankFacts facts_of_this_rank(const cuda::Options& options, int device, int size);

// What all ranks know of each other.
class GroupFacts {
 public:
  explicit GroupFacts(std::vector<DeviceRankFacts> facts);

  [[nodiscard]] int size() const { return static_cast<int>(facts_.size()); }
  [[nodiscard]] const DeviceRankFacts& of(int rank) const { return facts_[Index(rank)]; }
  [[nodiscard]] bool same_process(int a, int b) const;
  [[nodiscard]] bool same_device(int a, int b) const;
  [[nodiscard]] const Hosts& hosts() const { return hosts_; }
  // The number in this process of the device of `rank`; nothing if this process does not see it.
  [[nodiscard]] std::optional<int> number_here(int rank) const;
  // "GPU 0 (NVIDIA H100, 0000:65:00.0)"
  [[nodiscard]] std::string device_of(int rank) const;
  [[nodiscard]] std::vector<RankPlace> places() const;
  // Logs what a program is to do whose ranks share the device of `rank`.
  void warn_of_lazy_loading(int rank) const;

  // Throws UsageError when options differ between ranks.
  void require_equal_options() const;
  // The sizes that all use; throws UsageError when the ranks of a device do not fit on it at once.
  [[nodiscard]] DeviceGeometry choose_geometry() const;
  // The largest call by one_shot; 0: none.
  [[nodiscard]] std::uint64_t one_shot_bytes() const;

 private:
  [[nodiscard]] std::vector<int> ranks_on_device_of(int rank) const;
  void set_pairwise(DeviceGeometry& geometry, int channels) const;
  void require_residency(int blocks) const;
  void require_connections() const;

  std::vector<DeviceRankFacts> facts_;
  Hosts hosts_;
};

// What lies between this rank's device and every other's, as far as this process can see.
std::vector<DeviceLink> links_of(const GroupFacts& group, int rank);

}  // namespace rondo::detail::gpu
