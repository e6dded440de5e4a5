#include "communicator/register_memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/index.hpp"
#include "bootstrap/share_memory.hpp"
#include "bootstrap/together.hpp"
#include "carrier/memory.hpp"
#include "communicator/communicator_bootstrap.hpp"
#include "communicator/state.hpp"

namespace rondo {
namespace detail {
namespace {

// Whole pages for `count` elements; at least one, so that every rank has a piece.
std::size_t piece_bytes(std::size_t count, std::size_t element_bytes) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max());
  const std::size_t page = page_bytes();
  if (count > (kMost - page) / element_bytes) {
    throw UsageError(fmt::format("allocate({}): {} elements of {} bytes exceed the address space",
                                 count, count, element_bytes));
  }
  return std::max<std::size_t>((count * element_bytes + page - 1) / page, 1) * page;
}

// Registers a block, step by step. All ranks make every step that exchanges data, and if one rank
// fails in a step, all ranks throw.
class NewBlock {
 public:
  explicit NewBlock(Communicator& communicator)
      : state_(state_of(communicator)),
        bootstrap_(communicator, PartOf::allocate),
        sharing_(state_.wiring.links.ranks_sharing) {
    bootstrap_.set_patience(state_.defaults.timeout);
  }

  std::shared_ptr<RegisteredBlock> make(std::size_t count, std::size_t element_bytes) {
    std::size_t bytes = 0;
    together(bootstrap_, [&] { bytes = piece_bytes(count, element_bytes); });
    const std::vector<std::size_t> of_ranks = bootstrap_.exchange(bytes);
    require_room_for_all(of_ranks);
    Registry& registry = *state_.wiring.links.registry;
    // If no other rank has to reach the memory, each rank has memory of its own.
    if (registry.one_process() || sharing_.size() == 1) sharing_ = {bootstrap_.rank()};
    std::shared_ptr<RegisteredBlock> block;
    SharedObject object = share(of_ranks);
    together(bootstrap_, [&] { block = block_in(std::move(object), of_ranks); });
    // Every rank has touched its own piece by now, so the others' pages are where they belong. No
    // rank frees its piece before all have done this, which would bring its pages back.
    together(bootstrap_, [&] { block->map_pages(); });
    if (!registry.one_process()) {
      const std::size_t most = *std::max_element(of_ranks.begin(), of_ranks.end());
      state_.queue.run([&] { registry.add(block, most); });
    }
    return block;
  }

 private:
  // The first pages hold one word for each rank: whether it has freed its piece.
  [[nodiscard]] std::size_t header_bytes() const {
    const std::size_t words = static_cast<std::size_t>(bootstrap_.size()) * sizeof(std::uint64_t);
    return (words + page_bytes() - 1) / page_bytes() * page_bytes();
  }

  // Ranks that share a limit of memory reach it together, although the piece of each of them alone
  // would fit.
  void require_room_for_all(const std::vector<std::size_t>& of_ranks) {
    constexpr std::size_t kMostLimits = 16;  // the machine's, and those of nested control groups
    std::vector<MemoryLimit> mine = memory_limits();
    // The innermost are those that ranks share least.
    if (mine.size() > kMostLimits) {
      mine.erase(mine.begin() + 1, mine.end() - static_cast<std::ptrdiff_t>(kMostLimits - 1));
    }
    mine.resize(kMostLimits, {0, std::numeric_limits<std::uint64_t>::max()});
    const std::vector<std::vector<MemoryLimit>> of_all = bootstrap_.exchange_rows(mine);
    together(bootstrap_, [&] {
      for (const MemoryLimit& limit : mine) {
        std::size_t together_bytes = 0;
        for (std::size_t rank = 0; rank < of_all.size(); ++rank) {
          if (shares_limit(static_cast<int>(rank), of_all[rank], limit)) {
            together_bytes +=
                std::min(of_ranks[rank], std::numeric_limits<std::size_t>::max() - together_bytes);
          }
        }
        require_room_within(limit, together_bytes);
      }
    });
  }
  [[nodiscard]] bool shares_limit(int rank, const std::vector<MemoryLimit>& limits,
                                  const MemoryLimit& limit) const {
    const std::vector<RankPlace>& places = state_.wiring.topology.places;
    const auto place = [&](int one) -> const RankPlace& { return places[Index(one)]; };
    return on_one_host(place(rank), place(bootstrap_.rank())) &&
           std::any_of(limits.begin(), limits.end(),
                       [&](const MemoryLimit& one) { return one.id == limit.id; });
  }

  SharedObject share(const std::vector<std::size_t>& of_ranks) {
    std::size_t bytes = header_bytes();
    for (const int rank : sharing_) bytes += of_ranks[Index(rank)];
    const bool shares = sharing_.size() > 1;
    SharedMemory shared = share_memory(bootstrap_, sharing_.front(), shares, bytes, 0);
    together(bootstrap_, [&] {
      if (!shares) {
        shared.object.mapping = map_private(bytes);
        return;
      }
      for (const int rank : sharing_) {
        const Index index(rank);
        if (shared.mapped[index]) continue;
        throw TransportError(
            fmt::format("rank {} cannot map registered memory: {}", rank, shared.reasons[index]));
      }
    });
    return std::move(shared.object);
  }

  std::shared_ptr<RegisteredBlock> block_in(SharedObject object,
                                            const std::vector<std::size_t>& of_ranks) {
    const auto size = static_cast<std::size_t>(bootstrap_.size());
    RegisteredBlock::Pieces pieces;
    pieces.data.resize(size);
    pieces.freed.resize(size);
    pieces.rank = bootstrap_.rank();
    pieces.bytes = of_ranks[Index(pieces.rank)];
    touch(object, 0, header_bytes());
    auto* words = reinterpret_cast<std::uint64_t*>(object.mapping.data());
    std::size_t offset = header_bytes();
    for (const int rank : sharing_) {
      const Index index(rank);
      pieces.data[index] = object.mapping.data() + offset;
      pieces.freed[index] = words + index;
      if (rank == pieces.rank) touch(object, offset, pieces.bytes);
      offset += of_ranks[index];
    }
    pieces.mapping = std::move(object.mapping);
    return std::make_shared<RegisteredBlock>(std::move(pieces));
  }

  CommunicatorState& state_;
  CommunicatorBootstrap bootstrap_;
  std::vector<int> sharing_;  // the ranks whose pieces are in the block
};

}  // namespace

std::shared_ptr<RegisteredBlock> register_memory(Communicator& communicator, std::size_t count,
                                                 std::size_t element_bytes) {
  return NewBlock(communicator).make(count, element_bytes);
}

}  // namespace detail

RegisteredBytes::RegisteredBytes(std::shared_ptr<detail::RegisteredBlock> block)
    : block_(std::move(block)) {}
RegisteredBytes::RegisteredBytes(RegisteredBytes&&) noexcept = default;
RegisteredBytes& RegisteredBytes::operator=(RegisteredBytes&& other) noexcept {
  if (this == &other) return *this;
  if (block_ != nullptr) block_->free_own();
  block_ = std::move(other.block_);
  return *this;
}
RegisteredBytes::~RegisteredBytes() {
  if (block_ != nullptr) block_->free_own();
}
std::byte* RegisteredBytes::data() const { return block_ == nullptr ? nullptr : block_->own(); }

}  // namespace rondo
