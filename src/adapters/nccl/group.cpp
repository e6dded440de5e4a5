#include "adapters/nccl/group.hpp"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <future>
#include <iterator>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <thread>
#include <utility>

#include <rondo/errors.hpp>

#include "adapters/nccl/device.hpp"
#include "adapters/nccl/functions.hpp"
#include "adapters/nccl/real_library.hpp"

namespace rondo::nccl_programs {
namespace {

// The calls of one communicator.
struct Calls {
  ncclComm* comm;
  std::vector<std::pair<Call, cuda::Stream>> collectives;
  std::vector<Message> messages;
};

struct Joins {
  const ncclComm* parent;
  std::vector<std::function<void()>> in_turn;
};

struct Group {
  int depth = 0;
  std::vector<Joins> joins;
  std::vector<Calls> calls;
  std::vector<std::unique_ptr<ncclComm>> destroyed;
  std::shared_ptr<Family> family = nullptr;
  ncclResult_t refused = ncclSuccess;  // of the first call that was refused

  Calls& calls_of(ncclComm& comm) {
    const auto found =
        std::ranges::find_if(calls, [&](const Calls& one) { return one.comm == &comm; });
    return found != calls.end() ? *found : calls.emplace_back(Calls{&comm, {}, {}});
  }
};
thread_local Group group;

// Keeps the first of several exceptions.
class FirstError {
 public:
  template <class Act>
  void unless(const Act& act) {
    try {
      act();
    } catch (...) {
      add(std::current_exception());
    }
  }
  void add(const std::exception_ptr& error) {
    if (!error_) error_ = error;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

// NCCL lets the buffers of messages overlap; Rondo does not.
bool needs_copy(const Call& call) {
  if (call.collective != Collective::sendrecv && call.collective != Collective::all_to_all) {
    return false;
  }
  const std::size_t sent = call.count * element_bytes(call);
  const std::size_t received =
      call.collective == Collective::sendrecv ? call.received * element_bytes(call) : sent;
  const auto in = reinterpret_cast<std::uintptr_t>(call.in);
  const auto out = reinterpret_cast<std::uintptr_t>(call.out);
  return in < out + received && out < in + sent;
}

void enqueue_now(ncclComm& comm, const Call& call, cuda::Stream stream) {
  const std::shared_lock in_call(comm.in_use);
  if (!needs_copy(call)) return comm.devices.enqueue(call, stream);
  const CopyOnStream sent(call.in, call.count * element_bytes(call), stream);
  Call separate = call;
  separate.in = sent.data();
  comm.devices.enqueue(separate, stream);
}

// A call of a rank that this thread drives.
struct RankCall {
  ncclComm* comm;
  CallInTurn what;
  cuda::Stream stream;
};

std::vector<RankCall> calls_in_turn(const std::vector<Calls>& ranks) {
  std::vector<RankCall> all;
  for (const Calls& rank : ranks) {
    for (std::size_t i = 0; i < rank.collectives.size(); ++i) {
      const auto& [call, stream] = rank.collectives[i];
      all.push_back({rank.comm, {{-1, i}, call}, stream});
    }
    if (rank.messages.empty()) continue;
    const cuda::Stream stream = rank.messages.front().stream;
    if (std::ranges::any_of(rank.messages,
                            [&](const Message& message) { return message.stream != stream; })) {
      throw UsageError("the messages of one group and communicator must be on one stream");
    }
    for (const CallInTurn& one : calls_for(rank.messages, rank.comm->rank, rank.comm->size)) {
      all.push_back({rank.comm, one, stream});
    }
  }
  std::ranges::sort(all, {}, [](const RankCall& one) { return one.what.turn; });
  return all;
}

// A rank may be some calls ahead of the others, and not more (rondo/cuda.hpp). Where this thread
// drives several, it makes their calls in the order of their turns, so that it waits in none whose
// other side it has not made yet. As in NCCL, a wrong call leaves all of them unmade.
void enqueue_in_turn(const std::vector<Calls>& ranks) {
  const std::vector<RankCall> all = calls_in_turn(ranks);
  for (const RankCall& one : all) {
    if (!needs_copy(one.what.call)) {
      static_cast<void>(one.comm->devices.algorithm_for(one.what.call));
    }
  }
  FirstError error;
  for (const RankCall& one : all) {
    error.unless([&] { enqueue_now(*one.comm, one.what.call, one.stream); });
  }
  error.rethrow();
}

void run_in_turn(const std::vector<std::function<void()>>& joins) {
  FirstError error;
  for (const std::function<void()>& join : joins) error.unless(join);
  error.rethrow();
}

void destroy_now(std::vector<std::unique_ptr<ncclComm>> comms) {
  std::vector<std::function<void()>> leaves;
  for (std::unique_ptr<ncclComm>& comm : comms) {
    leaves.emplace_back([&comm] { comm.reset(); });
  }
  if (!leaves.empty()) run_together(leaves);
}

void end_group() {
  if (group.depth == 0) throw UsageError("ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return;
  Group ended = std::exchange(group, {});
  FirstError error;
  std::vector<std::function<void()>> joins;
  for (const Joins& of_parent : ended.joins) {
    joins.emplace_back([&of_parent] { run_in_turn(of_parent.in_turn); });
  }
  if (!joins.empty()) error.unless([&] { run_together(joins); });
  error.unless([&] { enqueue_in_turn(ended.calls); });
  error.unless([&] { destroy_now(std::move(ended.destroyed)); });
  error.rethrow();
}

// The two messages of a turn, of which one may be missing.
struct Sides {
  const Message* sent = nullptr;
  const Message* received = nullptr;
};

Call call_for(const Sides& sides) {
  const auto& [sent, received] = sides;
  Call call;
  call.type = DataType::u8;
  if (sent != nullptr) {
    call.collective = received == nullptr ? Collective::send : Collective::sendrecv;
    call.in = sent->data;
    call.to = sent->peer;
    call.count = sent->bytes;
  }
  if (received != nullptr) {
    if (sent == nullptr) call.collective = Collective::recv;
    call.out = received->data;
    call.from = received->peer;
    (sent == nullptr ? call.count : call.received) = received->bytes;
  }
  return call;
}

// A message of a rank to itself that is where it goes.
bool is_there(const Call& call, int rank) {
  return call.to == rank && call.from == rank && call.in == call.out && call.count == call.received;
}

}  // namespace

std::vector<CallInTurn> calls_for(const std::vector<Message>& messages, int rank, int size) {
  // Of each round, how many messages have been seen.
  std::vector<std::size_t> sent(static_cast<std::size_t>(size)), received(sent.size());
  std::map<Turn, Sides> turns;
  for (const Message& message : messages) {
    const int ahead = message.sends ? message.peer - rank : rank - message.peer;
    const int round = (ahead + size) % size;
    const std::size_t number = (message.sends ? sent : received)[static_cast<std::size_t>(round)]++;
    Sides& sides = turns[{round, number}];
    (message.sends ? sides.sent : sides.received) = &message;
  }
  std::vector<CallInTurn> calls;
  for (const auto& [turn, sides] : turns) {
    const Call call = call_for(sides);
    if (!is_there(call, rank)) calls.push_back({turn, call});
  }
  return calls;
}

void enqueue(ncclComm& comm, const Call& call, cuda::Stream stream) {
  if (group.depth == 0) return enqueue_now(comm, call, stream);
  group.calls_of(comm).collectives.emplace_back(call, stream);
}

void enqueue(ncclComm& comm, const Message& message) {
  if (group.depth > 0) {
    group.calls_of(comm).messages.push_back(message);
    return;
  }
  for (const CallInTurn& one : calls_for({message}, comm.rank, comm.size)) {
    enqueue_now(comm, one.call, message.stream);
  }
}

ncclResult_t refused_in_group(ncclResult_t result) {
  const bool is_error = result != ncclSuccess && result != ncclInProgress;
  if (is_error && group.depth > 0 && group.refused == ncclSuccess) group.refused = result;
  return result;
}

void join_together(const ncclComm* parent, std::function<void()> join) {
  if (group.depth == 0) return join();
  const auto found = std::ranges::find_if(
      group.joins, [&](const Joins& joins) { return parent != nullptr && joins.parent == parent; });
  Joins& joins = found != group.joins.end() ? *found : group.joins.emplace_back(Joins{parent, {}});
  joins.in_turn.push_back(std::move(join));
}

void run_together(const std::vector<std::function<void()>>& joins) {
  if (joins.size() == 1) return joins.front()();
  std::vector<std::exception_ptr> errors(joins.size());
  // No join may wait for one whose thread the system has refused.
  std::promise<bool> all_started;
  const std::shared_future<bool> may_begin = all_started.get_future().share();
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 0; i < joins.size(); ++i) {
        threads.emplace_back([may_begin, &join = joins[i], &error = errors[i]] {
          if (!may_begin.get()) return;
          try {
            join();
          } catch (...) {
            error = std::current_exception();
          }
        });
      }
    } catch (...) {
      all_started.set_value(false);
      throw;
    }
    all_started.set_value(true);
  }
  FirstError first;
  for (const std::exception_ptr& error : errors) first.add(error);
  first.rethrow();
}

std::shared_ptr<Family> family_of_group() {
  if (group.depth > 0 && group.family == nullptr) group.family = std::make_shared<Family>();
  return group.family;
}

void destroy(std::vector<std::unique_ptr<ncclComm>> comms) {
  if (group.depth == 0) return destroy_now(std::move(comms));
  std::ranges::move(comms, std::back_inserter(group.destroyed));
}

}  // namespace rondo::nccl_programs

extern "C" {

ncclResult_t ncclGroupStart() {
  using namespace rondo::nccl_programs;
  const ncclResult_t result = result_of([] { ++group.depth; });
  return result == ncclSuccess && has_real_library() ? by_real_library("ncclGroupStart") : result;
}

ncclResult_t ncclGroupEnd() {
  using namespace rondo::nccl_programs;
  const bool real = group.depth > 0 && has_real_library();
  const ncclResult_t refused = group.depth == 1 ? group.refused : ncclSuccess;
  if (refused != ncclSuccess) group = {};
  const ncclResult_t result = refused != ncclSuccess ? refused : result_of(end_group);
  const ncclResult_t of_real = real ? by_real_library("ncclGroupEnd") : ncclSuccess;
  return result != ncclSuccess ? result : of_real;
}
}
