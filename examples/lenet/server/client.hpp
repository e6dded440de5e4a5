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

#include "server/request.hpp"

namespace lenet {

// The elements of server `server`: shards differ by at most one element.
rondo::Range shard_of(std::size_t elements, std::size_t servers, std::size_t server);

// All calls but take() are for all shards. They throw std::runtime_error, which names the server.
//
// A worker talks to one server after the other, and worker w begins with server w: so at any time the workers are with
// different servers, as long as they keep step. 8 MiB to all four servers at once took 1.44 times as long on four hosts at
// 200 Mbit/s: vectors of several workers then meet on the way to each server.
class ServerClient {
 public:
  // `servers`: a communicator for each (pair_up()). `bounded`: the servers have a bound on staleness, for which calls wait.
  // There, pulls go to server 0 first, and pushes to all at once, since each of two workers might else wait for the other
  // one at different servers.
  ServerClient(std::vector<rondo::Communicator> servers, std::size_t worker, bool bounded);
  ServerClient(const ServerClient&) = delete;
  ServerClient& operator=(const ServerClient&) = delete;
  // Tells the servers that this worker is done; when an exception ends it, they learn that from its communicators.
  ~ServerClient();

  void set(std::span<const float> parameters);
  void read(std::span<float> parameters);
  void pull(std::span<float> parameters);
  void push(std::span<const float> gradients, float scale);
  // A number from server 0; nothing if all up to `end` are taken.
  std::optional<std::uint32_t> take(std::uint32_t end);

 private:
  void send_all(const Request& request, std::span<const float> values);
  void receive_all(const Request& request, std::span<float> values);
  // The server that is this worker's k-th.
  [[nodiscard]] std::size_t in_turn(std::size_t k) const { return (worker_ + k) % servers_.size(); }

  std::vector<rondo::Communicator> servers_;
  std::size_t worker_;
  bool bounded_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace lenet
