// A worker's view of the parameter servers, each of which holds a shard.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <rondo/chunk.hpp>
#include <rondo/communicator.hpp>
#include <span>
#include <vector>

#include "request.hpp"

namespace lenet::systems {

// The elements of server `server`: shards differ by at most one element.
rondo::Range shard_of(std::size_t elements, std::size_t servers, std::size_t server);

// All calls but take() are for all shards. They throw std::runtime_error, which names the server.
//
// Worker w begins with server w. Where shards are large, it talks to one server after the other, so
// that the vectors of several workers seldom meet on the way to one server: 8 MiB to all four
// servers at once took 763 ms on four hosts at 200 Mbit/s, and one after the other 625. Small
// shards travel at once, since each server's answer has its latency.
class ServerClient {
 public:
  // `servers`: a communicator for each (pair_up()). `bounded`: the servers have a bound on
  // staleness, for which a pull waits. Then all workers pull from server 0 first, and from one
  // server after the other: else each of two workers might be in the other's way at one of them.
  ServerClient(std::vector<rondo::Communicator> servers, std::size_t worker, bool bounded);
  ServerClient(const ServerClient&) = delete;
  ServerClient& operator=(const ServerClient&) = delete;
  // Tells the servers that this worker is done; when an exception ends it, they learn that from its
  // communicators.
  ~ServerClient();

  void set(std::span<const float> parameters);
  void read(std::span<float> parameters);
  void pull(std::span<float> parameters);
  void push(std::span<const float> gradients, float scale);
  // A number from server 0; nothing if all up to `end` are taken.
  std::optional<std::uint32_t> take(std::uint32_t end);

 private:
  void send_all(const Request& request, std::span<const float> values);
  void receive_all(const Request& request, std::span<float> values, bool in_order);
  // Whether calls for so many values are made one after the other.
  [[nodiscard]] bool one_by_one(std::size_t values) const;
  // The server that is this worker's k-th.
  [[nodiscard]] std::size_t in_turn(std::size_t k) const { return (worker_ + k) % servers_.size(); }

  std::vector<rondo::Communicator> servers_;
  std::size_t worker_;
  bool bounded_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace lenet::systems
