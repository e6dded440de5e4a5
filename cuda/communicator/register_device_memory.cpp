#include "cuda/communicator/register_device_memory.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/cuda_registered_memory.hpp>
#include <rondo/errors.hpp>

#include "base/index.hpp"
#include "bootstrap/together.hpp"
#include "communicator/communicator_bootstrap.hpp"
#include "cuda/joining/shown_memory.hpp"

namespace rondo {
namespace detail::gpu {
namespace {

std::size_t bytes_for(std::size_t count, std::size_t element_bytes) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  if (count > kMost / 2 / element_bytes) {
    throw UsageError(fmt::format("allocate({}): {} elements of {} bytes exceed the address space",
                                 count, count, element_bytes));
  }
  return count * element_bytes;
}

// Registers a block, step by step. All ranks make every step that exchanges data, and if one rank
// fails in a step, all ranks throw. CUDA may wait for running kernels when it allocates, maps or
// frees memory; so nothing of that is done before the calls of all ranks have ended, nor after a
// rank may have begun a new one.
class NewDeviceBlock {
 public:
  NewDeviceBlock(rondo::Communicator& host, const DeviceWiring& wiring, DeviceEngine& engine)
      : bootstrap_(host, PartOf::cuda_allocate), engine_(engine), wiring_(wiring) {}

  std::shared_ptr<DeviceBlock> make(std::size_t count, std::size_t element_bytes) {
    engine_.check();
    std::size_t bytes = 0;
    together(bootstrap_, [&] {
      bytes = bytes_for(count, element_bytes);
      engine_.wait_for_calls();
    });
    give_back();
    const std::vector<std::size_t> of_ranks = bootstrap_.exchange(bytes);
    const std::size_t most = *std::max_element(of_ranks.begin(), of_ranks.end());
    const bool registers = most > 0 && wiring_.offers.has(Algorithm::direct) &&
                           !engine_.registry().one_device() && bootstrap_.size() > 1;
    std::shared_ptr<DeviceBlock> block;
    together(bootstrap_, [&] { block = allocate(bytes, registers); });
    if (registers) share(*block);
    together(bootstrap_, [] {});  // no rank's call begins while CUDA still works for another rank
    if (registers) engine_.registry().add(block);
    return block;
  }

 private:
  // Releases the blocks that all ranks have freed: first all ranks release the others' memory, then
  // each its own.
  void give_back() {
    const std::vector<std::uint8_t> mine = engine_.registry().freed();
    if (mine.empty()) return;  // on all ranks
    const auto freed = bootstrap_.exchange_rows(mine);
    std::vector<bool> by_all(mine.size(), true);
    for (const auto& row : freed) {
      for (std::size_t i = 0; i < row.size(); ++i) by_all[i] = by_all[i] && row[i] != 0;
    }
    if (std::find(by_all.begin(), by_all.end(), true) == by_all.end()) return;
    together(bootstrap_, [&] { engine_.registry().release_others(by_all); });
    engine_.registry().remove(by_all);
  }

  // Without bytes, nothing: freeing it would wait for kernels that other ranks may have begun by
  // then.
  [[nodiscard]] std::shared_ptr<DeviceBlock> allocate(std::size_t bytes, bool registers) const {
    const std::size_t table = registers ? DeviceBlock::table_bytes_for(bootstrap_.size()) : 0;
    std::shared_ptr<DeviceMemory> memory;
    if (registers) {
      memory = allocate_to_show(wiring_.device, table + bytes);
    } else if (bytes > 0) {
      memory = std::make_shared<DeviceMemory>(wiring_.device, bytes);
    }
    return std::make_shared<DeviceBlock>(std::move(memory), table, bytes);
  }

  void share(DeviceBlock& block) {
    try {
      map_and_tell(block);
    } catch (...) {
      // Other ranks may have mapped this rank's memory: it is released only after they have
      // released theirs of it.
      block.release_others();
      try {
        together(bootstrap_, [] {});
      } catch (const Error&) {
        block.leave();
      }
      throw;
    }
  }

  // Maps the memory of all ranks here, and writes to this rank's table where the others have mapped
  // its memory.
  void map_and_tell(DeviceBlock& block) {
    const ShownMemory mine = show(block.memory(), wiring_.device);
    const std::vector<ShownMemory> shown = bootstrap_.exchange(mine);
    // The address of each rank's block, as this rank's kernels reach it.
    std::vector<std::uint64_t> addresses(shown.size());
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      for (std::size_t rank = 0; rank < shown.size(); ++rank) {
        if (rank == static_cast<std::size_t>(wiring_.rank)) continue;
        std::byte* base =
            map(shown[rank], wiring_.in_this_process[rank], wiring_.device, block.others());
        addresses[rank] = reinterpret_cast<std::uintptr_t>(base) + block.table_bytes();
      }
    });
    const auto seen_by = bootstrap_.exchange_rows(addresses);
    std::vector<std::uint64_t> table;
    for (const auto& row : seen_by) table.push_back(row[Index(wiring_.rank)]);
    together(bootstrap_, [&] {
      const DeviceScope scope(wiring_.device);
      api::copy(block.table(), table.data(), table.size() * sizeof(table[0]));
    });
  }

  CommunicatorBootstrap bootstrap_;
  DeviceEngine& engine_;
  const DeviceWiring& wiring_;
};

}  // namespace

std::shared_ptr<DeviceBlock> register_device_memory(rondo::Communicator& host,
                                                    const DeviceWiring& wiring,
                                                    DeviceEngine& engine, std::size_t count,
                                                    std::size_t element_bytes) {
  return NewDeviceBlock(host, wiring, engine).make(count, element_bytes);
}

}  // namespace detail::gpu

namespace cuda {
namespace {

// In a forked child the memory belongs to the parent, so the child's copy of the owner releases
// nothing.
void free(std::shared_ptr<detail::gpu::DeviceBlock>& block) {
  detail::keep_if_inherited(block);
  if (block == nullptr) return;
  block->free();
  block.reset();
}

}  // namespace

RegisteredBytes::RegisteredBytes(std::shared_ptr<detail::gpu::DeviceBlock> block)
    : block_(std::move(block)) {}
RegisteredBytes::RegisteredBytes(RegisteredBytes&&) noexcept = default;
RegisteredBytes& RegisteredBytes::operator=(RegisteredBytes&& other) noexcept {
  if (this == &other) return *this;
  free(block_);
  block_ = std::move(other.block_);
  return *this;
}
RegisteredBytes::~RegisteredBytes() { free(block_); }
std::byte* RegisteredBytes::data() const { return block_ == nullptr ? nullptr : block_->data(); }

}  // namespace cuda
}  // namespace rondo
