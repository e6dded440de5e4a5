#include "bootstrap/mpi_link_probe.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/check_mpi.hpp"

namespace rondo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPingTag = 0;
constexpr int kPongTag = 1;
constexpr int kBurstTag = 2;
constexpr int kBurstEndTag = 3;
constexpr int kPings = 10;
constexpr int kBursts = 3;
// 1 MiB: more than network adapters and shapers let through at once, and 9 ms at 1 Gbit/s.
constexpr int kMessages = 32;
constexpr int kMessageBytes = 32 * 1024;
constexpr auto kPatience = std::chrono::seconds(60);

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Messages towards the next rank and from the previous one; either may be kNoLink, and then nothing moves
// there. Both ends use all tags in the same order.
class Probe {
 public:
  Probe(MPI_Comm comm, int next, int prev) : comm_(comm), next_(next), prev_(prev) {}

  // The shortest time there and back, halved.
  double latency_us() {
    double shortest = std::numeric_limits<double>::max();
    for (int ping = 0; ping < kPings; ++ping) {
      const auto start = Clock::now();
      send(next_, kPingTag, 1);
      const std::size_t answer = receive(memory_->answer, next_, kPongTag);
      wait_for(receive(memory_->in[0], prev_, kPingTag));
      send(prev_, kPongTag, 1);
      wait_for(answer);
      shortest = std::min(shortest, us_since(start));
    }
    wait_for_all();
    return next_ == kNoLink ? 0 : shortest / 2;
  }

  // Timed from the first message of a burst until the receiver answers that it has the last, less the latency of
  // the answer: bytes that only reached a buffer do not count. All ranks send at once, as they send slices in a call.
  double bytes_per_us(double latency_us) {
    double shortest = std::numeric_limits<double>::max();
    for (int burst = 0; burst < kBursts; ++burst) {
      const auto start = Clock::now();
      const std::size_t answer = receive(memory_->answer, next_, kBurstEndTag);
      const std::size_t first = open_.size();
      for (auto& in : memory_->in) receive(in, prev_, kBurstTag);
      const std::size_t last = open_.size();
      for (int message = 0; message < kMessages; ++message) send(next_, kBurstTag, kMessageBytes);
      for (std::size_t index = first; index < last; ++index) wait_for(index);
      send(prev_, kBurstEndTag, 1);
      wait_for(answer);
      shortest = std::min(shortest, us_since(start));
      wait_for_all();
    }
    const double us = std::max(shortest - latency_us, 1.0);
    return next_ == kNoLink ? 0 : kMessages * double{kMessageBytes} / us;
  }

  // After a failure MPI may still use the memory.
  void leave_memory_to_mpi() { static_cast<void>(memory_.release()); }

 private:
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
  struct Memory {
    std::vector<std::byte> out = std::vector<std::byte>(kMessageBytes);
    std::vector<std::vector<std::byte>> in{kMessages, std::vector<std::byte>(kMessageBytes)};
    std::vector<std::byte> answer = std::vector<std::byte>(1);
  };

  void send(int peer, int tag, int bytes) {
    if (peer == kNoLink) return;
    MPI_Request& request = open_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(MPI_Isend(memory_->out.data(), bytes, MPI_BYTE, peer, tag, comm_, &request),
              "MPI_Isend", peer);
  }
  // The request's index.
  std::size_t receive(std::vector<std::byte>& into, int peer, int tag) {
    if (peer == kNoLink) return kNothing;
    MPI_Request& request = open_.emplace_back(MPI_REQUEST_NULL);
    check_mpi(
        MPI_Irecv(into.data(), static_cast<int>(into.size()), MPI_BYTE, peer, tag, comm_, &request),
        "MPI_Irecv", peer);
    return open_.size() - 1;
  }
  void wait_for(std::size_t index) {
    if (index == kNothing) return;
    wait_until([&](int& done) { return MPI_Test(&open_[index], &done, MPI_STATUS_IGNORE); });
  }
  void wait_for_all() {
    wait_until([&](int& done) {
      return MPI_Testall(static_cast<int>(open_.size()), open_.data(), &done, MPI_STATUSES_IGNORE);
    });
    open_.clear();
  }
  template <class Test>
  void wait_until(Test test) {
    const auto give_up = Clock::now() + kPatience;
    for (int done = 0; done == 0;) {
      check_mpi(test(done), "measuring a link");
      if (done != 0) return;
      if (Clock::now() > give_up) {
        throw TransportError(fmt::format(
            "measuring the links from rank {} and to rank {} has not ended in a minute; look at "
            "their output, and whether MPI can reach them",
            prev_, next_));
      }
      ::sched_yield();  // the other side may need this core
    }
  }

  MPI_Comm comm_;
  int next_;
  int prev_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  std::vector<MPI_Request> open_;
};

}  // namespace

LinkFacts probe_links(MPI_Comm comm, int next, int prev) {
  Probe probe(comm, next, prev);
  try {
    const double latency = probe.latency_us();
    return {latency, probe.bytes_per_us(latency)};
  } catch (...) {
    probe.leave_memory_to_mpi();
    throw;
  }
}

}  // namespace rondo::detail
