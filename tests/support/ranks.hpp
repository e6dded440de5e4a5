// Ranks as threads of the test.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include <rondo/rondo.hpp>

namespace rondo::test {

// Runs `body` once for each rank of a new local group, each on a thread of its own; rethrows the
// exception of the lowest rank that threw.
inline void run_ranks(int size, const CommunicatorOptions& options,
                      const std::function<void(Communicator&)>& body) {
  std::vector<Communicator> group = local_group(size, options);
  std::vector<std::exception_ptr> errors(group.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < group.size(); ++i) {
    threads.emplace_back([&, i] {
      try {
        body(group[i]);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace rondo::test
