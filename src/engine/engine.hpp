// The host's shell around run_schedule: turns a checked call into integers and pointers, waits, and
// turns what went wrong into an error.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <rondo/communicator.hpp>

#include "carrier/abort_board.hpp"
#include "carrier/host_segment.hpp"
#include "carrier/peer_watch.hpp"
#include "carrier/pump.hpp"
#include "engine/plan.hpp"
#include "engine/waiter.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail {

// Everything that joins one rank to the others. Made by communicator/wiring, owned by the engine, which
// knows nothing of how it came to be.
struct Wiring {
  int rank = 0;
  int size = 1;
  Topology topology;
  FifoGeometry ring_geometry;
  FifoGeometry star_geometry;  // of the edges that `naive` uses; nowhere larger than the ring's
  std::vector<SendEnd> to;     // by ring position of the peer; used where there is an edge
  std::vector<RecvEnd> from;   // likewise
  std::shared_ptr<HostSegment> segment;
  std::vector<int> ranks_sharing;  // the segment, this rank among them
  PeerWatch peers;
  std::unique_ptr<Pump> pump;  // null when shared memory carries all; dies before the segment
  bool crowded = false;
  std::uint64_t streaming_bytes = 0;  // outputs from this size on go past the caches
};

class Engine {
 public:
  explicit Engine(Wiring wiring);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // `call` has been checked, and its algorithm is settled. Blocks until done; one thread at a time.
  void run(const Call& call, Algorithm algorithm, std::chrono::milliseconds timeout);

  // Any thread may call.
  void abort(const std::string& reason) noexcept;

  [[nodiscard]] const Wiring& wiring() const { return wiring_; }

 private:
  class HostPort;

  void run_checked(const Call& call, Algorithm algorithm, const Signature& signature);
  [[nodiscard]] bool streams(const Call& call) const;
  void drain(const Signature& signature, const HostPort& port);
  [[noreturn]] void fail(const Signature& signature, const HostPort& port, WaitResult result,
                         int peer);
  [[nodiscard]] std::string who_is_missing(const Signature& signature) const;
  void raise(const std::string& text) noexcept;
  void throw_if_ended(const Signature& signature);

  Wiring wiring_;
  AbortBoard& board_;
  Waiter waiter_;
  RingPlace place_;
  std::uint64_t sequence_ = 0;
};

}  // namespace rondo::detail
