// Ranks that are threads hand wirings to each other here. All ranks of a group share one handover,
// which lives as long as any of them: a rank can take what was left there even if the rank that
// left it has failed meanwhile.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace rondo::detail {

struct Wiring;

class Handover {
 public:
  using Wirings = std::shared_ptr<std::vector<Wiring>>;

  // Returns the number by which others find them.
  std::uint64_t leave(Wirings wirings) {
    const std::lock_guard lock(mutex_);
    left_[++last_] = std::move(wirings);
    return last_;
  }
  [[nodiscard]] Wirings find(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    return left_.at(number);
  }
  void forget(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    left_.erase(number);
  }

 private:
  std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Wirings> left_;
};

}  // namespace rondo::detail
