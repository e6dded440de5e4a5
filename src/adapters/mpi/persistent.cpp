#include "adapters/mpi/persistent.hpp"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include <rondo/errors.hpp>

#include "adapters/mpi/calls.hpp"

namespace rondo::mpi_programs {
namespace {

struct Remembered {
  std::mutex mutex;
  std::map<MPI_Request, PersistentCall> calls;
  // Whether `calls` may have any. Relaxed: a thread that starts a request has got it from the
  // thread that made it, by means of the program's own.
  std::atomic<bool> any = false;

  // Threads of the program may outlive main().
  static Remembered& of_process() {
    static auto* const all = new Remembered();
    return *all;
  }
};

}  // namespace

void remember(MPI_Request request, PersistentCall call) {
  Remembered& all = Remembered::of_process();
  const std::lock_guard lock(all.mutex);
  all.calls[request] = std::move(call);
  all.any.store(true, std::memory_order_relaxed);
}

int start_request(MPI_Request* request, HandOn hand_on) {
  Remembered& all = Remembered::of_process();
  if (!all.any.load(std::memory_order_relaxed) || request == nullptr) return hand_on();
  std::unique_lock lock(all.mutex);
  const auto found = all.calls.find(*request);
  if (found == all.calls.end()) {
    lock.unlock();
    return hand_on();
  }
  const PersistentCall call = found->second;
  lock.unlock();
  return guarded(call.group == nullptr ? MPI_COMM_SELF : call.group->comm(), [&]() -> int {
    if (call.group == nullptr) {
      throw UsageError("MPI_Start of a persistent call whose communicator was freed");
    }
    return start(call.function, call.group->comm(), *call.group, call.bytes,
                 [&](Communicator& by) { call.start(by, request); });
  });
}

int free_request(const MPI_Request* request, HandOn hand_on) {
  Remembered& all = Remembered::of_process();
  if (all.any.load(std::memory_order_relaxed) && request != nullptr) {
    const std::lock_guard lock(all.mutex);
    all.calls.erase(*request);
  }
  return hand_on();
}

void forget_calls_of(const Group& group) {
  Remembered& all = Remembered::of_process();
  const std::lock_guard lock(all.mutex);
  for (auto& [request, call] : all.calls) {
    if (call.group == &group) call.group = nullptr;
  }
}

}  // namespace rondo::mpi_programs
