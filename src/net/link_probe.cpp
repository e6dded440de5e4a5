#include "net/link_probe.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPingTag = 0;
constexpr int kPongTag = 1;
constexpr int kBurstTag = 2;
constexpr int kBurstEndTag = 3;
constexpr int kGreetTag = 5;
constexpr int kPings = 10;
constexpr int kBursts = 3;
// 1 MiB: more than network adapters and shapers let through at once, and 9 ms at 1 Gbit/s.
constexpr int kMessages = 32;
constexpr std::size_t kMessageBytes = 32768;
constexpr const char* kWhat = "measuring a link";

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Messages towards the next rank and from the previous one; either may be kNoLink, and then nothing
// moves there. Both ends use all tags in the same order.
class Probe {
 public:
  Probe(Messenger& messenger, int next, int prev)
      : messenger_(messenger), next_(next), prev_(prev) {}

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

  // Timed from the first message of a burst until the receiver answers that it has the last, less
  // the latency of the answer: bytes that only reached a buffer do not count. All ranks send at
  // once, as they send slices in a call.
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
    return next_ == kNoLink ? 0 : static_cast<double>(kMessages * kMessageBytes) / us;
  }

  // After a failure the messenger may still use the memory.
  void leave_memory() { static_cast<void>(memory_.release()); }

 private:
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
  struct Memory {
    std::vector<std::byte> out = std::vector<std::byte>(kMessageBytes);
    std::vector<std::vector<std::byte>> in{kMessages, std::vector<std::byte>(kMessageBytes)};
    std::vector<std::byte> answer = std::vector<std::byte>(1);
  };

  void send(int peer, int tag, std::size_t bytes) {
    if (peer == kNoLink) return;
    open_.push_back(
        messenger_.send(peer, tag, memory_->out.data(), bytes, Messenger::Delivery::sent));
  }
  // The operation's index.
  std::size_t receive(std::vector<std::byte>& into, int peer, int tag) {
    if (peer == kNoLink) return kNothing;
    open_.push_back(messenger_.receive(peer, tag, into.data(), into.size()));
    return open_.size() - 1;
  }
  void wait_for(std::size_t index) {
    if (index == kNothing) return;
    wait_until([&] { return messenger_.has_ended(open_[index], kWhat, kAnyPeer); });
  }
  void wait_for_all() {
    wait_until([&] { return messenger_.have_ended(open_, kWhat); });
    open_.clear();
  }
  template <class Test>
  void wait_until(Test test) {
    const auto give_up = Clock::now() + messenger_.patience();
    while (!test()) {
      if (Clock::now() > give_up) {
        throw TransportError(fmt::format(
            "measuring the links from rank {} and to rank {} has not ended in {} ms; look at "
            "their output, and whether these hosts reach each other",
            prev_, next_, messenger_.patience().count()));
      }
      ::sched_yield();  // the other side may need this core
    }
  }

  Messenger& messenger_;
  int next_;
  int prev_;
  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  std::vector<Operation> open_;
};

}  // namespace

namespace {

// A rank that is greeted.
struct Greeted {
  int rank;
  Operation received = {};
  Operation sent = {};
  bool open = true;
  std::string failure = {};
};

// Notes a failure of `peer`, and goes on with the others, which may need this rank's help to be
// connected.
template <class Step>
void try_with(Greeted& peer, const Step& step) {
  try {
    step();
  } catch (const TransportError& error) {
    peer.failure = error.what();
    peer.open = false;
  }
}

std::vector<Greeted> neighbours(int next, int prev) {
  std::vector<Greeted> peers;
  if (next != kNoLink) peers.push_back({next});
  if (prev != kNoLink && prev != next) peers.push_back({prev});
  return peers;
}

}  // namespace

void greet(Messenger& messenger, int next, int prev) {
  std::vector<Greeted> peers = neighbours(next, prev);
  // Left as they are after a failure, since the messenger may still use them.
  auto bytes = std::make_unique<std::vector<std::byte>>(peers.size() + 1);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    try_with(peers[i], [&] {
      peers[i].received = messenger.receive(peers[i].rank, kGreetTag, &(*bytes)[i], 1);
      peers[i].sent =
          messenger.send(peers[i].rank, kGreetTag, &bytes->back(), 1, Messenger::Delivery::sent);
    });
  }
  const auto give_up = Clock::now() + messenger.patience();
  const auto is_open = [](const Greeted& peer) { return peer.open; };
  while (std::any_of(peers.begin(), peers.end(), is_open) && Clock::now() < give_up) {
    for (Greeted& peer : peers) {
      if (!peer.open) continue;
      try_with(peer, [&] {
        peer.open = !messenger.has_ended(peer.received, kWhat, peer.rank) ||
                    !messenger.has_ended(peer.sent, kWhat, peer.rank);
      });
    }
    ::sched_yield();  // the other side may need this core
  }
  std::string failures;
  for (const Greeted& peer : peers) {
    if (!peer.open && peer.failure.empty()) continue;
    failures += fmt::format(
        "{}rank {} cannot exchange messages with rank {}, with which it shares no memory: {}",
        failures.empty() ? "" : "; ", messenger.rank(), peer.rank,
        peer.failure.empty() ? fmt::format("no answer in {} ms", messenger.patience().count())
                             : peer.failure);
  }
  if (failures.empty()) return;
  static_cast<void>(bytes.release());
  throw TransportError(
      failures +
      "; can these hosts reach each other at any port, or at those of UCX_TCP_PORT_RANGE, by the "
      "network interfaces of UCX_NET_DEVICES or RONDO_INTERFACE?");
}

LinkFacts probe_links(Messenger& messenger, int next, int prev) {
  Probe probe(messenger, next, prev);
  try {
    const double latency = probe.latency_us();
    return {latency, probe.bytes_per_us(latency)};
  } catch (...) {
    probe.leave_memory();
    throw;
  }
}

}  // namespace rondo::detail
