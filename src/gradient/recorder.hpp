// Records how long the parts of an iteration took: its statistics, and the timeline where that is
// wanted.
//
// Marks are recorded by the thread that makes them, with the reducer's lock held; rounds of buckets
// by the thread that drives them, without the lock. Each half has its own members. begin(), end()
// and timeline() use both, while no rounds are driven, with the lock held.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <rondo/gradients.hpp>

#include "base/deadline.hpp"
#include "gradient/timeline.hpp"

namespace rondo::detail {

// When a bucket was reduced. Without times, as for devices, where the host does not wait, all
// statistics are 0.
struct BucketRound {
  Clock::time_point filled;   // its last gradient came
  Clock::time_point start;    // it began to be packed
  Clock::time_point packed;   // its call began
  Clock::time_point arrived;  // its call ended
  Clock::time_point end;      // its gradients were in place
  std::size_t bytes = 0;
};

class Recorder {
 public:
  // `traces`: whether it keeps a timeline.
  Recorder(bool traces, std::size_t parameters);

  void begin(Clock::time_point first_mark, std::size_t buckets);

  // The half of the marks.
  void mark(const std::string& parameter, Clock::time_point now);
  void compute(std::string_view what, Clock::time_point begin, Clock::time_point end);
  void fill(std::size_t bucket, Clock::time_point now) { filled_[bucket] = now; }
  [[nodiscard]] Clock::time_point filled(std::size_t bucket) const { return filled_[bucket]; }

  // The half of the rounds, between begin() and end(). `what`: the bucket, in a timeline.
  void round(std::size_t bucket, const BucketRound& round);
  void trace(const std::string& what, const BucketRound& round);
  [[nodiscard]] bool traces() const { return traces_; }

  // How the iteration went: `finish_began`, when its caller began to wait for it; `arrival`, the
  // order of marks.
  struct End {
    Clock::time_point finish_began;
    Clock::time_point now;
    std::span<const std::uint32_t> arrival;
    bool reordered = false;
  };
  void end(const End& end);
  // Ends an iteration without statistics: it failed, or no rank was left to take part in it.
  void drop(Clock::time_point now) { last_mark_ = now; }

  [[nodiscard]] const GradientStatistics& statistics() const { return finished_; }
  [[nodiscard]] std::vector<Stretch> timeline() const;

 private:
  [[nodiscard]] BucketStatistics statistics_of(const BucketRound& round) const;

  const bool traces_;
  std::uint64_t iterations_ = 0;  // that have ended

  Clock::time_point first_mark_;
  Clock::time_point last_mark_;
  std::vector<Clock::time_point> filled_;  // by bucket
  std::vector<Stretch> computed_;

  std::vector<BucketRound> rounds_;  // by bucket
  std::vector<Stretch> travelled_;

  GradientStatistics finished_;
};

}  // namespace rondo::detail
