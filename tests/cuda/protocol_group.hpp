// The memory of a group of ranks, as their kernels see it, in plain host memory.
#pragma once

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>
#include <vector>

#include "cuda/engine/call_arguments.hpp"
#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/one_shot.hpp"
#include "plan/call_signature.hpp"

namespace rondo::test {

inline constexpr std::uint64_t kOneShotBytes = 4096;
inline constexpr std::uint64_t kMessageNumber = 77;

class ProtocolGroup {
 public:
  ProtocolGroup(int size, int channels, const detail::FifoGeometry& geometry)
      : size_(size),
        channels_(channels),
        geometry_(geometry),
        ring_(static_cast<std::size_t>(size)) {
    // Positions differ from ranks, so that code that mixes them up fails.
    std::iota(ring_.rbegin(), ring_.rend(), 0);
    std::rotate(ring_.begin(), std::find(ring_.begin(), ring_.end(), 0), ring_.end());
    const std::uint64_t units = detail::gpu::inbox_units_for(kOneShotBytes, channels);
    for (int rank = 0; rank < size; ++rank) {
      auto& memory = *ranks_.emplace_back(std::make_unique<RankMemory>());
      memory.ring.assign(ring_.begin(), ring_.end());
      memory.states.resize(static_cast<std::size_t>(blocks()));
      memory.to.resize(ends());
      memory.from.resize(ends());
      memory.pairwise_to.resize(ends());
      memory.pairwise_from.resize(ends());
      memory.inbox.resize(detail::gpu::inbox_words(units, channels, size));
      memory.posts.resize(ends());
      memory.failures.resize(static_cast<std::size_t>(blocks()));
    }
    for (const auto& memory : ranks_) {
      for (const auto& owner : ranks_) {
        memory->inboxes.push_back(reinterpret_cast<std::byte*>(owner->inbox.data()));
        memory->posts_of_all.push_back(owner->posts.data());
      }
    }
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) connect(from, to);
    }
  }

  // The kernel arguments with which rank `rank` makes `call`. `reachable`: by the other ranks, the
  // call's buffers.
  detail::gpu::KernelArguments arguments(int rank, const Call& call, Algorithm algorithm,
                                         const detail::gpu::CallBlocks& blocks,
                                         std::chrono::nanoseconds timeout, bool reachable = true) {
    const detail::RingPlace place{rank,      size_,     &ring_,
                                  geometry_, geometry_, {geometry_, geometry_}};
    std::optional<detail::gpu::ShownBuffers> shown;
    if (reachable) {
      shown.emplace();
      shown->in.offset = reinterpret_cast<std::uintptr_t>(call.in);
      shown->out.offset = reinterpret_cast<std::uintptr_t>(call.out);
    }
    detail::PlannedCall planned;
    planned.call = call;
    planned.algorithm = algorithm;
    if (!detail::is_message(call.collective)) {
      planned.signature = detail::signature_of(call, algorithm, size_);
    }
    detail::gpu::KernelArguments arguments =
        detail::gpu::call_arguments(planned, place, view(rank), blocks, shown);
    arguments.timeout_ns = static_cast<std::uint64_t>(timeout.count());
    return arguments;
  }

  // A message of another communicator waits where rank `to` receives from rank `from`.
  void leave_message(int from, int to) {
    const auto position = [this](int rank) {
      return std::find(ring_.begin(), ring_.end(), rank) - ring_.begin();
    };
    detail::SendEnd& end =
        ranks_[static_cast<std::size_t>(from)]->pairwise_to[static_cast<std::size_t>(position(to))];
    end.slot()->signature = detail::signature_of_message(from, kMessageNumber + 1, 1, DataType::u8);
    end.slot()->bytes = 1;
    end.publish();
  }

  [[nodiscard]] const std::vector<detail::gpu::KernelFailure>& failures(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)]->failures;
  }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int channels() const { return channels_; }
  // The most of a call: those of a sendrecv.
  [[nodiscard]] int blocks() const { return 2 * channels_; }

 private:
  struct RankMemory {
    std::vector<std::int32_t> ring;
    std::vector<detail::gpu::BlockState> states;
    std::vector<detail::SendEnd> to;
    std::vector<detail::RecvEnd> from;
    std::vector<detail::SendEnd> pairwise_to;
    std::vector<detail::RecvEnd> pairwise_from;
    std::vector<detail::gpu::Words> inbox;
    std::vector<std::byte*> inboxes;
    std::vector<detail::gpu::Post> posts;
    std::vector<detail::gpu::Post*> posts_of_all;
    std::vector<detail::gpu::KernelFailure> failures;
    detail::gpu::DevicePresence presence;
  };
  struct alignas(detail::kCounterSpacing) Line {
    std::byte bytes[detail::kCounterSpacing];
  };

  [[nodiscard]] std::size_t ends() const {
    return static_cast<std::size_t>(channels_) * static_cast<std::size_t>(size_);
  }

  detail::FifoMemory make_fifo() {
    auto& lines = fifos_.emplace_back(detail::contiguous_fifo_bytes(geometry_) / sizeof(Line));
    return detail::contiguous_fifo(reinterpret_cast<std::byte*>(lines.data()), geometry_);
  }

  // For each channel between two positions, a FIFO, and one for `pairwise`.
  void connect(int from, int to) {
    for (int channel = 0; channel < channels_; ++channel) {
      const detail::FifoMemory fifo = make_fifo();
      const detail::FifoMemory pairwise = make_fifo();
      const auto at = [&](int position) {
        return static_cast<std::size_t>(channel) * static_cast<std::size_t>(size_) +
               static_cast<std::size_t>(position);
      };
      memory_at(from).to[at(to)] = detail::SendEnd(fifo);
      memory_at(to).from[at(from)] = detail::RecvEnd(fifo);
      memory_at(from).pairwise_to[at(to)] = detail::SendEnd(pairwise);
      memory_at(to).pairwise_from[at(from)] = detail::RecvEnd(pairwise);
    }
  }
  RankMemory& memory_at(int position) {
    return *ranks_[static_cast<std::size_t>(ring_[static_cast<std::size_t>(position)])];
  }

  detail::gpu::RankView view(int rank) {
    RankMemory& memory = *ranks_[static_cast<std::size_t>(rank)];
    detail::gpu::RankView view;
    view.rank = rank;
    view.size = size_;
    view.ring = memory.ring.data();
    view.blocks = memory.states.data();
    view.to = memory.to.data();
    view.from = memory.from.data();
    view.pairwise_to = memory.pairwise_to.data();
    view.pairwise_from = memory.pairwise_from.data();
    view.inboxes = memory.inboxes.data();
    view.inbox_units = detail::gpu::inbox_units_for(kOneShotBytes, channels_);
    view.posts = memory.posts_of_all.data();
    view.message_number = kMessageNumber;
    view.control = {&abort_, &memory.presence, memory.failures.data()};
    return view;
  }

  int size_;
  int channels_;
  detail::FifoGeometry geometry_;
  std::vector<int> ring_;
  detail::FifoCounter abort_;
  std::vector<std::unique_ptr<RankMemory>> ranks_;
  std::vector<std::vector<Line>> fifos_;
};

}  // namespace rondo::test
