#include "gradient/recorder.hpp"

#include <algorithm>

namespace rondo::detail {
namespace {

double us_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double, std::micro>(end - begin).count();
}

}  // namespace

Recorder::Recorder(bool traces, std::size_t parameters) : traces_(traces) {
  finished_.arrival.reserve(parameters);
  // There are at most as many buckets as parameters, so that no iteration allocates.
  filled_.reserve(parameters);
  rounds_.reserve(parameters);
  finished_.buckets.reserve(parameters);
}

void Recorder::begin(Clock::time_point first_mark, std::size_t buckets) {
  first_mark_ = first_mark;
  filled_.assign(buckets, first_mark);
  rounds_.assign(buckets, {});
}

void Recorder::mark(const std::string& parameter, Clock::time_point now) {
  if (!traces_) return;
  const Clock::time_point before = last_mark_ == Clock::time_point() ? now : last_mark_;
  computed_.push_back({Row::compute, parameter, before, now, iterations_ + 1, 0});
  last_mark_ = now;
}

void Recorder::compute(std::string_view what, Clock::time_point begin, Clock::time_point end) {
  if (!traces_) return;
  computed_.push_back({Row::compute, std::string(what), begin, end, iterations_ + 1, 0});
  last_mark_ = std::max(last_mark_, end);
}

void Recorder::round(std::size_t bucket, const BucketRound& round) { rounds_[bucket] = round; }

void Recorder::trace(const std::string& what, const BucketRound& round) {
  constexpr auto kShortest = std::chrono::microseconds(1);
  const auto add = [&](Row row, Clock::time_point begin, Clock::time_point end) {
    travelled_.push_back({row, what, begin, end, iterations_ + 1, round.bytes});
  };
  add(Row::queue, std::min(round.filled, round.start), round.start);
  if (round.packed - round.start > kShortest) add(Row::reduce, round.start, round.packed);
  add(Row::transfer, round.packed, round.arrived);
  if (round.end - round.arrived > kShortest) add(Row::reduce, round.arrived, round.end);
}

BucketStatistics Recorder::statistics_of(const BucketRound& round) const {
  return {round.bytes, us_between(first_mark_, round.filled), us_between(first_mark_, round.start),
          us_between(first_mark_, round.end)};
}

void Recorder::end(const End& end) {
  finished_.iteration = ++iterations_;
  finished_.arrival.assign(end.arrival.begin(), end.arrival.end());
  finished_.reordered = end.reordered;
  finished_.compute_us = us_between(first_mark_, end.finish_began);
  finished_.exposed_us = us_between(end.finish_began, end.now);
  finished_.bytes = 0;
  finished_.transfer_us = 0;
  finished_.buckets.clear();
  for (const BucketRound& round : rounds_) {
    const BucketStatistics& bucket = finished_.buckets.emplace_back(statistics_of(round));
    finished_.bytes += bucket.bytes;
    finished_.transfer_us += bucket.end_us - bucket.start_us;
  }
  const double transfer_us = finished_.transfer_us;
  finished_.hidden_fraction = transfer_us > 0 ? 1 - finished_.exposed_us / transfer_us : 0;
  last_mark_ = end.now;
}

std::vector<Stretch> Recorder::timeline() const {
  std::vector<Stretch> all = computed_;
  all.insert(all.end(), travelled_.begin(), travelled_.end());
  return all;
}

}  // namespace rondo::detail
