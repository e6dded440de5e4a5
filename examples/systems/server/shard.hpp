// What a parameter server holds: a part of the parameters, to which the gradients of all workers
// are applied, either together or each on its arrival. Knows nothing of how they come.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace lenet::systems {

// How many updates by others came between a worker's pull and the arrival of the gradients that it
// computed from it.
struct Staleness {
  static constexpr std::size_t kBins = 64;

  std::array<std::uint64_t, kBins>
      updates{};  // by staleness; the last bin counts all greater ones, too
  std::uint64_t sum = 0;
  std::uint64_t greatest = 0;

  void count(std::uint64_t staleness);
  [[nodiscard]] std::uint64_t number() const;  // of all updates
  [[nodiscard]] double mean() const;
};

struct ShardOptions {
  int workers = 1;
  // Whether each update takes the gradients of all workers, summed in the workers' order. Else each
  // worker's gradients are an update of their own.
  bool synchronous = true;
  // No update is staler; unset: no bound. A worker's pull, or push, then waits until others have
  // pushed.
  std::optional<std::uint64_t> most_staleness = std::nullopt;
};

// Each worker has a thread of its own, which calls push() and pull(). A worker that trains pulls,
// then pushes.
class Shard {
 public:
  Shard(std::size_t elements, const ShardOptions& options);

  [[nodiscard]] std::size_t size() const { return values_.size(); }
  void set(std::span<const float> values);
  void read(std::span<float> values);
  // As read(), and the worker will push gradients that it computes from these values.
  void pull(int worker, std::span<float> values);
  // values ← values − scale · gradients. Synchronous: returns when all workers have pushed, and the
  // update is made.
  void push(int worker, std::span<const float> gradients, float scale);
  // The numbers from 0 on, each to one caller; nothing from `end` on.
  std::optional<std::uint64_t> take_number(std::uint64_t end);
  // From now on all calls above throw `reason`, also those that wait.
  void fail(const std::exception_ptr& reason);
  [[nodiscard]] Staleness staleness();

 private:
  template <class Condition>
  void wait(std::unique_lock<std::mutex>& lock, Condition condition);
  void push_with_all(std::unique_lock<std::mutex>& lock, int worker,
                     std::span<const float> gradients, float scale);
  void push_alone(std::unique_lock<std::mutex>& lock, int worker, std::span<const float> gradients,
                  float scale);
  [[nodiscard]] bool leaves_others_in_time(int worker) const;

  const ShardOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr failure_;
  std::vector<float> values_;
  std::uint64_t version_ = 0;  // updates so far
  std::uint64_t next_number_ = 0;
  // Synchronous: of the workers that have pushed for the next update, which is made when all have.
  std::map<int, std::span<const float>> pushed_;
  std::vector<float> sums_;
  // Else: the version that each worker has pulled and not pushed to yet.
  std::map<int, std::uint64_t> pulled_;
  Staleness staleness_;
};

}  // namespace lenet::systems
