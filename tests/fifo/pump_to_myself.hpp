// A FIFO that a pump carries from a process to itself, for the FIFO contract.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "memory/shared_memory.hpp"
#include "net/pump.hpp"

namespace rondo::test {

// `Network` makes a Messenger whose only rank is this process.
template <class Network>
class PumpToMyself {
 public:
  static constexpr detail::FifoGeometry kGeometry{1024, 4};

  explicit PumpToMyself(detail::AlgorithmSet algorithms = {Algorithm::ring}) {
    const detail::FifoMemory out = detail::contiguous_fifo(out_.data(), kGeometry);
    const detail::FifoMemory in = detail::contiguous_fifo(in_.data(), kGeometry);
    send_ = detail::SendEnd(out);
    recv_ = detail::RecvEnd(in);
    detail::PumpEdges edges;
    edges.out.push_back({0, algorithms, 0, detail::RecvEnd(out)});
    edges.in.push_back({0, algorithms, 0, detail::SendEnd(in)});
    edges.board = &board_;
    pump_ = std::make_unique<detail::Pump>(network_.messenger(), std::move(edges));
  }
  [[nodiscard]] static detail::FifoGeometry geometry() { return kGeometry; }
  // The slots of both local FIFOs, and what the network buffers: bounded, since one message in
  // every half FIFO ends only when it is received.
  [[nodiscard]] static std::uint64_t capacity() { return std::uint64_t{3} * kGeometry.slots; }
  detail::SendEnd& send_end() { return send_; }
  detail::RecvEnd& recv_end() { return recv_; }
  void drive() { pump_->progress(); }
  detail::Pump& pump() { return *pump_; }

 private:
  detail::Mapping out_ = detail::map_private(detail::contiguous_fifo_bytes(kGeometry));
  detail::Mapping in_ = detail::map_private(detail::contiguous_fifo_bytes(kGeometry));
  detail::AbortBoard board_;
  detail::SendEnd send_;
  detail::RecvEnd recv_;
  Network network_;
  std::unique_ptr<detail::Pump> pump_;
};

}  // namespace rondo::test
