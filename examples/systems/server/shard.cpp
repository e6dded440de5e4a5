#include "shard.hpp"

#include <algorithm>
#include <numeric>

namespace lenet::systems {

void Staleness::count(std::uint64_t staleness) {
  ++updates[std::min<std::uint64_t>(staleness, kBins - 1)];
  sum += staleness;
  greatest = std::max(greatest, staleness);
}

std::uint64_t Staleness::number() const {
  return std::accumulate(updates.begin(), updates.end(), std::uint64_t{0});
}

double Staleness::mean() const {
  return static_cast<double>(sum) / static_cast<double>(std::max<std::uint64_t>(number(), 1));
}

Shard::Shard(std::size_t elements, const ShardOptions& options)
    : options_(options), values_(elements), sums_(options.synchronous ? elements : 0) {}

template <class Condition>
void Shard::wait(std::unique_lock<std::mutex>& lock, Condition condition) {
  changed_.wait(lock, [&] { return failure_ != nullptr || condition(); });
  if (failure_ != nullptr) std::rethrow_exception(failure_);
}

void Shard::set(std::span<const float> values) {
  const std::lock_guard lock(mutex_);
  std::copy(values.begin(), values.end(), values_.begin());
}

void Shard::read(std::span<float> values) {
  std::unique_lock lock(mutex_);
  wait(lock, [] { return true; });
  std::copy(values_.begin(), values_.end(), values.begin());
}

// A worker that pulls may have to push after all others that have pulled, each of which makes its
// gradients staler by one.
void Shard::pull(int worker, std::span<float> values) {
  std::unique_lock lock(mutex_);
  wait(lock,
       [this] { return !options_.most_staleness || pulled_.size() <= *options_.most_staleness; });
  if (!options_.synchronous) pulled_[worker] = version_;
  std::copy(values_.begin(), values_.end(), values.begin());
}

void Shard::push(int worker, std::span<const float> gradients, float scale) {
  std::unique_lock lock(mutex_);
  if (options_.synchronous) {
    push_with_all(lock, worker, gradients, scale);
  } else {
    push_alone(lock, worker, gradients, scale);
  }
}

// The worker's thread waits here, so its gradients stay where they are until the last worker has
// come.
void Shard::push_with_all(std::unique_lock<std::mutex>& lock, int worker,
                          std::span<const float> gradients, float scale) {
  const std::uint64_t before = version_;
  pushed_[worker] = gradients;
  if (pushed_.size() == static_cast<std::size_t>(options_.workers)) {
    std::fill(sums_.begin(), sums_.end(), 0.0F);
    for (const auto& [rank, theirs] : pushed_) {
      for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += theirs[i];
    }
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] -= scale * sums_[i];
    pushed_.clear();
    ++version_;
    staleness_.count(0);
    changed_.notify_all();
  }
  wait(lock, [&] { return version_ != before; });
}

void Shard::push_alone(std::unique_lock<std::mutex>& lock, int worker,
                       std::span<const float> gradients, float scale) {
  wait(lock, [&] { return leaves_others_in_time(worker); });
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] -= scale * gradients[i];
  staleness_.count(version_ - pulled_.at(worker));
  pulled_.erase(worker);
  ++version_;
  changed_.notify_all();
}

// Whether all other workers that have pulled can still push within the bound after this one, the
// one that pulled first going first. With the bound 2, and workers A, B, C that have pulled
// versions 4, 4 and 5: at version 5, C must wait, since then A could push at version 6, but B only
// at 7, three updates after its pull. If A pushes at 5, B can at 6 and C at 7.
bool Shard::leaves_others_in_time(int worker) const {
  if (!options_.most_staleness) return true;
  std::vector<std::uint64_t> others;
  for (const auto& [rank, version] : pulled_) {
    if (rank != worker) others.push_back(version);
  }
  std::sort(others.begin(), others.end());
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (version_ + 1 + i > others[i] + *options_.most_staleness) return false;
  }
  return true;
}

std::optional<std::uint64_t> Shard::take_number(std::uint64_t end) {
  std::unique_lock lock(mutex_);
  wait(lock, [] { return true; });
  if (next_number_ >= end) return std::nullopt;
  return next_number_++;
}

void Shard::fail(const std::exception_ptr& reason) {
  const std::lock_guard lock(mutex_);
  if (failure_ == nullptr) failure_ = reason;
  changed_.notify_all();
}

Staleness Shard::staleness() {
  const std::lock_guard lock(mutex_);
  return staleness_;
}

}  // namespace lenet::systems
