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

// All calls but take() are for all shards at once. They throw std::runtime_error, which names the server.
class ServerClient {
 public:
  // `servers`: a communicator for each (pair_up()). `in_order`: pulls from one server after the other, which servers with a
  // bound on staleness need: else each of two workers might be in the other's way at one of them.
  ServerClient(std::vector<rondo::Communicator> servers, bool in_order);
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
  void receive_all(const Request& request, std::span<float> values, bool in_order);

  std::vector<rondo::Communicator> servers_;
  bool in_order_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace lenet
