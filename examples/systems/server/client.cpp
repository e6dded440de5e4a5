#include "client.hpp"

#include <fmt/format.h>

#include <array>
#include <rondo/errors.hpp>
#include <stdexcept>
#include <utility>

#include "pairs.hpp"

namespace lenet::systems {
namespace {

RequestMessage message_of(const Request& request) { return {request.kind, request.argument}; }

// Calls under way to servers. None outlives this object, since they use the caller's memory.
class Calls {
 public:
  Calls() = default;
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    for (const Call& call : calls_) {
      try {
        call.work.wait();
      } catch (const rondo::Error&) {
        continue;  // wait() has thrown it, or an earlier one
      }
    }
  }
  void add(std::size_t server, rondo::Work work) { calls_.push_back({server, std::move(work)}); }
  // Throws std::runtime_error for the first that failed.
  void wait() const {
    for (const Call& call : calls_) {
      try {
        call.work.wait();
      } catch (const rondo::Error& error) {
        throw std::runtime_error(
            fmt::format("parameter server {} (rank {} of a pair, whose rank {} is this worker): {}",
                        call.server, kServer, kWorker, error.what()));
      }
    }
  }

 private:
  struct Call {
    std::size_t server;
    rondo::Work work;
  };
  std::vector<Call> calls_;
};

}  // namespace

rondo::Range shard_of(std::size_t elements, std::size_t servers, std::size_t server) {
  return rondo::chunk_range(elements, servers, server);
}

ServerClient::ServerClient(std::vector<rondo::Communicator> servers, std::size_t worker,
                           bool bounded)
    : servers_(std::move(servers)), worker_(worker), bounded_(bounded) {}

ServerClient::~ServerClient() {
  if (std::uncaught_exceptions() > exceptions_) return;
  const RequestMessage done = message_of({Request::done, 0});
  for (rondo::Communicator& server : servers_) {
    try {
      server.send(done, kServer);
    } catch (const rondo::Error&) {
      continue;
    }
  }
}

bool ServerClient::one_by_one(std::size_t values) const {
  constexpr std::size_t kShardBytes = std::size_t{256} << 10U;
  return values / servers_.size() * sizeof(float) >= kShardBytes;
}

void ServerClient::send_all(const Request& request, std::span<const float> values) {
  const RequestMessage message = message_of(request);
  Calls calls;
  for (std::size_t k = 0; k < servers_.size(); ++k) {
    const std::size_t i = in_turn(k);
    const rondo::Range part = shard_of(values.size(), servers_.size(), i);
    calls.add(i, servers_[i].send_async(message, kServer));
    calls.add(i, servers_[i].send_async(values.subspan(part.offset, part.count), kServer));
    if (one_by_one(values.size())) calls.wait();
  }
  calls.wait();
}

void ServerClient::receive_all(const Request& request, std::span<float> values, bool in_order) {
  const RequestMessage message = message_of(request);
  Calls calls;
  for (std::size_t k = 0; k < servers_.size(); ++k) {
    const std::size_t i = in_order ? k : in_turn(k);
    const rondo::Range part = shard_of(values.size(), servers_.size(), i);
    calls.add(i, servers_[i].send_async(message, kServer));
    calls.add(i, servers_[i].recv_async(values.subspan(part.offset, part.count), kServer));
    if (in_order || one_by_one(values.size())) calls.wait();
  }
  calls.wait();
}

void ServerClient::set(std::span<const float> parameters) {
  send_all({Request::set, 0}, parameters);
}
void ServerClient::read(std::span<float> parameters) {
  receive_all({Request::read, 0}, parameters, false);
}
void ServerClient::pull(std::span<float> parameters) {
  receive_all({Request::pull, 0}, parameters, bounded_);
}
void ServerClient::push(std::span<const float> gradients, float scale) {
  send_all({Request::push, std::bit_cast<std::uint32_t>(scale)}, gradients);
}

std::optional<std::uint32_t> ServerClient::take(std::uint32_t end) {
  const RequestMessage message = message_of({Request::take, end});
  std::array<std::uint32_t, 1> number = {};
  Calls calls;
  calls.add(0, servers_.front().send_async(message, kServer));
  calls.add(0, servers_.front().recv_async(number, kServer));
  calls.wait();
  if (number[0] >= end) return std::nullopt;
  return number[0];
}

}  // namespace lenet::systems
