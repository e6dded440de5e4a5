// One hop of a FIFO in memory: the time of a slot to the other core and back, and the bytes a
// second.

#include <benchmark/benchmark.h>

#include <cstring>
#include <thread>
#include <vector>

#include "fifo/fifo.hpp"
#include "memory/shared_memory.hpp"

namespace rondo::bench {
namespace {

using namespace detail;

constexpr std::uint64_t kStop = ~std::uint64_t{0};

struct Link {
  explicit Link(const FifoGeometry& geometry)
      : memory(map_private(contiguous_fifo_bytes(geometry))),
        send(contiguous_fifo(memory.data(), geometry)),
        recv(contiguous_fifo(memory.data(), geometry)) {}
  Mapping memory;
  SendEnd send;
  RecvEnd recv;
};

void publish(Link& link, std::uint64_t bytes) {
  while (!link.send.can_acquire()) {
  }
  link.send.slot()->bytes = bytes;
  link.send.publish();
}

std::uint64_t take(Link& link) {
  while (!link.recv.can_peek()) {
  }
  const std::uint64_t bytes = link.recv.slot()->bytes;
  link.recv.release();
  return bytes;
}

void round_trip(benchmark::State& state) {
  Link there({64, 8});
  Link back({64, 8});
  std::thread other([&] {
    for (;;) {
      const std::uint64_t bytes = take(there);
      publish(back, bytes);
      if (bytes == kStop) return;
    }
  });
  for ([[maybe_unused]] auto iteration : state) {
    publish(there, 8);
    benchmark::DoNotOptimize(take(back));
  }
  publish(there, kStop);
  other.join();
}
BENCHMARK(round_trip)->Name("FIFO there and back")->UseRealTime();

// The producer copies into slots, the consumer out of them.
void stream(benchmark::State& state) {
  const auto slot_bytes = static_cast<std::uint64_t>(state.range(0));
  Link link({slot_bytes, 8});
  std::vector<std::byte> source(slot_bytes);
  std::thread other([&] {
    std::vector<std::byte> target(slot_bytes);
    for (;;) {
      while (!link.recv.can_peek()) {
      }
      const SlotHeader* slot = link.recv.slot();
      if (slot->bytes == kStop) return;
      std::memcpy(target.data(), payload(slot), slot_bytes);
      link.recv.release();
    }
  });
  for ([[maybe_unused]] auto iteration : state) {
    while (!link.send.can_acquire()) {
    }
    std::memcpy(payload(link.send.slot()), source.data(), slot_bytes);
    link.send.slot()->bytes = slot_bytes;
    link.send.publish();
  }
  publish(link, kStop);
  other.join();
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(stream)
    ->Name("FIFO stream")
    ->RangeMultiplier(4)
    ->Range(4 << 10, 256 << 10)
    ->UseRealTime();

}  // namespace
}  // namespace rondo::bench
