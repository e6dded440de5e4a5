#include "bench/sim/calibrate.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <rondo/rondo.hpp>
#include <span>
#include <stdexcept>
#include <vector>

#include "reduce/kernels.hpp"

namespace rondo::sim {
namespace {

using Clock = std::chrono::steady_clock;

double us_of(const std::function<void()>& work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

std::vector<double> times_of(int number, const std::function<void()>& work) {
  std::vector<double> times;
  for (int i = 0; i < number; ++i) times.push_back(us_of(work));
  std::sort(times.begin(), times.end());
  return times;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

// Messages between two ranks, one of which measures.
class Ends {
 public:
  Ends(Communicator& comm, int other) : comm_(comm), other_(other), measures_(comm.rank() == 0) {}

  // There and back.
  void ping_pong() {
    std::vector<float> word(1);
    if (measures_) {
      comm_.send(word, other_);
      comm_.recv(word, other_);
    } else {
      comm_.recv(word, 0);
      comm_.send(word, 0);
    }
  }
  // `messages` of `bytes` each to the other end, which answers the last.
  void stream(int messages, std::size_t bytes) {
    buffer_.resize(bytes / sizeof(float));
    for (int i = 0; i < messages; ++i) {
      if (measures_) {
        comm_.send(buffer_, other_);
      } else {
        comm_.recv(buffer_, 0);
      }
    }
    std::vector<float> word(1);
    if (measures_) {
      comm_.recv(word, other_);
    } else {
      comm_.send(word, 0);
    }
  }

 private:
  Communicator& comm_;
  int other_;
  bool measures_;
  std::vector<float> buffer_;
};

void measure_link(Network& network, Ends& ends) {
  constexpr int kWarmUps = 20;
  constexpr int kPings = 400;
  constexpr int kStreams = 9;
  constexpr int kMessages = 200;
  constexpr std::size_t kSmallBytes = std::size_t{4} << 20U;
  constexpr std::size_t kLargeBytes = std::size_t{12} << 20U;
  times_of(kWarmUps, [&] { ends.ping_pong(); });
  const std::vector<double> pings = times_of(kPings, [&] { ends.ping_pong(); });
  const std::vector<double> words =
      times_of(kStreams, [&] { ends.stream(kMessages, sizeof(float)); });
  const std::vector<double> small = times_of(kStreams, [&] { ends.stream(1, kSmallBytes); });
  const std::vector<double> large = times_of(kStreams, [&] { ends.stream(1, kLargeBytes); });
  // What is above the median is jitter, which the simulation adds.
  double not_late = 0;
  for (const double time : pings) not_late += std::min(time, median(pings));
  const double one_way = not_late / static_cast<double>(pings.size()) / 2;
  // A stream of words costs the slower end a slice each.
  network.slice_us = std::min((median(words) - median(pings)) / (kMessages - 1), one_way / 2);
  network.slice_us = std::max(network.slice_us, 0.1);
  network.latency_us = std::max(one_way - 2 * network.slice_us, 0.0);
  network.link_bytes_per_us =
      static_cast<double>(kLargeBytes - kSmallBytes) / (median(large) - median(small));
  double late = 0;
  for (const double time : pings) late += std::max(0.0, time - median(pings)) / 2;
  network.jitter_us = late / static_cast<double>(pings.size());
}

void measure_computing(Network& network) {
  constexpr std::size_t kElements = std::size_t{1} << 14U;  // of a slice in cache
  constexpr int kTimes = 400;
  std::vector<float> a(kElements, 1.0F);
  std::vector<float> b(kElements, 2.0F);
  std::vector<float> c(kElements);
  const auto bytes_of = [](std::vector<float>& values) {
    return std::as_writable_bytes(std::span(values)).data();
  };
  const auto combine = detail::vector_kernel(DataType::f32, ReduceOp::sum).combine;
  const auto copy = detail::vector_copy().cached;
  constexpr auto kBytes = static_cast<double>(kElements * sizeof(float));
  network.reduce_bytes_per_us =
      kBytes / median(times_of(kTimes, [&] {
        combine(bytes_of(c), nullptr, bytes_of(a), bytes_of(b), kElements, {});
      }));
  network.copy_bytes_per_us =
      kBytes /
      median(times_of(kTimes, [&] { copy(bytes_of(c), bytes_of(a), kElements * sizeof(float)); }));
}

}  // namespace

Network measure_network(Communicator& comm) {
  const auto& places = comm.topology().places;
  const auto other = std::find_if(places.begin(), places.end(), [&](const RankPlace& place) {
    return !rondo::on_one_host(place, places.front());
  });
  if (other == places.end()) {
    throw std::runtime_error("a network is measured between hosts, and all ranks are on one");
  }
  Network network;
  network.ranks_per_host =
      static_cast<int>(std::count_if(places.begin(), places.end(), [&](const RankPlace& place) {
        return rondo::on_one_host(place, places.front());
      }));
  const int rank = static_cast<int>(other - places.begin());
  if (comm.rank() == 0 || comm.rank() == rank) {
    Ends ends(comm, rank);
    measure_link(network, ends);
  }
  if (comm.rank() == 0) measure_computing(network);
  comm.barrier();
  return network;
}

}  // namespace rondo::sim
