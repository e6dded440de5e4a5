// A block of host threads: what the device protocol runs on where there is no GPU.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "cuda/kernels/kernel.hpp"
#include "cuda/protocol/arguments.hpp"
#include "cuda/protocol/block.hpp"

namespace rondo::test {

// Which thread runs next: the system decides, unless a test uses the interleaver (interleaver.hpp).
class Turns {
 public:
  virtual ~Turns() = default;
  virtual void next() { std::this_thread::yield(); }
  virtual std::uint64_t now_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }
};

// What the threads of one block share while a kernel runs.
class HostTeam {
 public:
  HostTeam(unsigned threads, int ranks)
      : threads_(threads),
        to(static_cast<std::size_t>(ranks)),
        from(static_cast<std::size_t>(ranks)),
        buffers(static_cast<std::size_t>(ranks)) {}

  void sync(Turns& turns) {
    const unsigned round = round_.load(std::memory_order_relaxed);
    // The last thread to arrive opens the next round. Acquire-release, so that all threads see what
    // each has written.
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      // All have read what the round before said, and have begun this one.
      some_failed_[(round + 1) % 2].store(false, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      turns.next();
      return;
    }
    while (round_.load(std::memory_order_acquire) == round) turns.next();
  }
  bool all(Turns& turns, bool ok) {
    std::atomic<bool>& some_failed = some_failed_[round_.load(std::memory_order_relaxed) % 2];
    if (!ok) some_failed.store(true, std::memory_order_relaxed);
    sync(turns);
    return !some_failed.load(std::memory_order_relaxed);
  }
  bool claim() { return !claimed_.exchange(true); }
  [[nodiscard]] unsigned threads() const { return threads_; }

 private:
  unsigned threads_;
  std::atomic<unsigned> arrived_ = 0;
  std::atomic<unsigned> round_ = 0;
  std::array<std::atomic<bool>, 2> some_failed_ = {};  // in this round, and in the one before
  std::atomic<bool> claimed_ = false;

 public:
  detail::gpu::BlockShared shared;
  std::vector<detail::SendEnd> to;
  std::vector<detail::RecvEnd> from;
  std::vector<detail::gpu::RankBuffers> buffers;
};

// One thread of a team.
class HostBlock {
 public:
  HostBlock(HostTeam& team, unsigned thread, Turns& turns)
      : team_(team), thread_(thread), turns_(turns) {}

  [[nodiscard]] unsigned thread() const { return thread_; }
  [[nodiscard]] unsigned threads() const { return team_.threads(); }
  [[nodiscard]] bool leader() const { return thread_ == 0; }
  void sync() { team_.sync(turns_); }
  bool all(bool ok) { return team_.all(turns_, ok); }
  void pause() { turns_.next(); }
  std::uint64_t now_ns() { return turns_.now_ns(); }
  bool claim() { return team_.claim(); }
  detail::gpu::BlockShared& shared() { return team_.shared; }
  detail::SendEnd* to() { return team_.to.data(); }
  detail::RecvEnd* from() { return team_.from.data(); }
  detail::gpu::RankBuffers* buffers() { return team_.buffers.data(); }

 private:
  HostTeam& team_;
  unsigned thread_;
  Turns& turns_;
};
static_assert(detail::gpu::Block<HostBlock>);

// What the kernel does, on host threads.
void run_on_host(const detail::gpu::Kernel& kernel, HostBlock& block,
                 const detail::gpu::KernelArguments& call, int channel);

}  // namespace rondo::test
