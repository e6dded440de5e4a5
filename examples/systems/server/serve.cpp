#include "serve.hpp"

#include <fmt/format.h>

#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "pairs.hpp"
#include "request.hpp"

namespace lenet::systems {
namespace {

// The thread of one worker. Waits as a call in the background: other threads of this rank compute
// meanwhile.
class Desk {
 public:
  Desk(rondo::Communicator pair, int worker, Shard& shard)
      : pair_(std::move(pair)), worker_(worker), shard_(shard), elements_(shard.size()) {}

  void run() {
    while (answer(next())) {
    }
  }

 private:
  Request next() {
    RequestMessage message{};
    pair_.recv(message, kWorker, kSleep);
    return {static_cast<Request::Kind>(message[0]), message[1]};
  }

  // Whether more requests follow.
  bool answer(const Request& request) {
    switch (request.kind) {
      case Request::set:
        pair_.recv(elements_, kWorker, kSleep);
        shard_.set(elements_);
        return true;
      case Request::read:
        shard_.read(elements_);
        pair_.send(elements_, kWorker, kSleep);
        return true;
      case Request::pull:
        shard_.pull(worker_, elements_);
        pair_.send(elements_, kWorker, kSleep);
        return true;
      case Request::push:
        pair_.recv(elements_, kWorker, kSleep);
        shard_.push(worker_, elements_, request.scale());
        return true;
      case Request::take: {
        const std::array number = {static_cast<std::uint32_t>(
            shard_.take_number(request.argument).value_or(request.argument))};
        pair_.send(number, kWorker, kSleep);
        return true;
      }
      case Request::done:
        return false;
    }
    return false;
  }

  static constexpr rondo::CallOptions kSleep = {.background = true};
  rondo::Communicator pair_;
  int worker_;
  Shard& shard_;
  std::vector<float> elements_;
};

}  // namespace

void serve(std::vector<rondo::Communicator> workers, Shard& shard) {
  std::mutex mutex;
  std::exception_ptr first;
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; rondo::Communicator & pair : workers) {
      threads.emplace_back([&, worker, pair = std::move(pair)]() mutable {
        try {
          Desk(std::move(pair), worker, shard).run();
        } catch (const std::exception& error) {
          const std::lock_guard lock(mutex);
          if (first == nullptr) {
            first = std::make_exception_ptr(std::runtime_error(
                fmt::format("worker {} (rank {} of a pair, whose rank {} is this server): {}",
                            worker, kWorker, kServer, error.what())));
          }
          shard.fail(first);
        }
      });
      ++worker;
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
}

}  // namespace lenet::systems
