// Runs threads one at a time, in an order drawn from a seed: the same seed, the same interleaving.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "tests/cuda/host_block.hpp"

namespace rondo::test {

class Interleaver final : public Turns {
 public:
  explicit Interleaver(std::uint64_t seed) : random_(seed) {}

  // Runs all bodies, each on a thread of its own, until all have ended. They take turns where they
  // wait and at every barrier.
  void run(const std::vector<std::function<void()>>& bodies) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < bodies.size(); ++i) alive_.push_back(i);
    wake_ = std::vector<std::condition_variable>(bodies.size());
    for (std::size_t i = 0; i < bodies.size(); ++i) {
      threads.emplace_back([this, i, &bodies] {
        me() = i;
        {
          std::unique_lock lock(mutex_);
          wake_[i].wait(lock, [&] { return running_ == i; });
        }
        bodies[i]();
        const std::lock_guard lock(mutex_);
        std::erase(alive_, i);
        if (!alive_.empty()) pick();
      });
    }
    {
      const std::lock_guard lock(mutex_);
      pick();
    }
    for (std::thread& thread : threads) thread.join();
  }

  void next() override {
    std::unique_lock lock(mutex_);
    ++turns_;
    pick();
    wake_[me()].wait(lock, [&] { return running_ == me(); });
  }
  // A clock that counts turns: a deadline, too, is the same for the same seed.
  std::uint64_t now_ns() override { return turns_; }
  [[nodiscard]] std::uint64_t turns() const { return turns_; }

 private:
  static std::size_t& me() {
    thread_local std::size_t index = 0;
    return index;
  }
  void pick() {  // with the lock held
    running_ = alive_[random_() % alive_.size()];
    wake_[running_].notify_one();
  }

  std::mutex mutex_;
  std::mt19937_64 random_;
  std::vector<std::condition_variable> wake_;
  std::vector<std::size_t> alive_;
  std::size_t running_ = SIZE_MAX;
  std::uint64_t turns_ = 0;
};

}  // namespace rondo::test
