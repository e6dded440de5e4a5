#include "adapters/nccl/group.hpp"

#include <algorithm>
#include <exception>
#include <iterator>
#include <string>
#include <thread>
#include <utility>

#include <rondo/errors.hpp>

#include "adapters/nccl/real_library.hpp"

namespace rondo::nccl_programs {
namespace {

// The calls of one communicator.
struct Calls {
  ncclComm* comm;
  std::vector<std::pair<Call, cuda::Stream>> collectives;
  std::vector<Message> messages;
};

struct Group {
  int depth = 0;
  std::vector<std::function<void()>> joins;
  std::vector<Calls> calls;

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
      if (!error_) error_ = std::current_exception();
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

// Adds the calls for the messages to the collectives.
void order_messages(Calls& calls) {
  if (calls.messages.empty()) return;
  const cuda::Stream stream = calls.messages.front().stream;
  if (std::ranges::any_of(calls.messages,
                          [&](const Message& message) { return message.stream != stream; })) {
    throw UsageError("the messages of one group and communicator must be on one stream");
  }
  for (const Call& call : calls_for(calls.messages, calls.comm->rank, calls.comm->size)) {
    calls.collectives.emplace_back(call, stream);
  }
}

// A rank may be some calls ahead of the others, and not more (rondo/cuda.hpp): so where this thread
// drives several, each of them makes a call in turn.
void enqueue_in_turn(std::vector<Calls>& ranks) {
  FirstError error;
  std::size_t most = 0;
  for (Calls& rank : ranks) {
    error.unless([&] { order_messages(rank); });
    most = std::max(most, rank.collectives.size());
  }
  for (std::size_t i = 0; i < most; ++i) {
    for (Calls& rank : ranks) {
      if (i >= rank.collectives.size()) continue;
      const auto& [call, stream] = rank.collectives[i];
      error.unless([&] { rank.comm->devices.enqueue(call, stream); });
    }
  }
  error.rethrow();
}

void end_group() {
  if (group.depth == 0) throw UsageError("ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return;
  Group ended = std::exchange(group, {});
  FirstError error;
  if (!ended.joins.empty()) error.unless([&] { run_together(ended.joins); });
  error.unless([&] { enqueue_in_turn(ended.calls); });
  error.rethrow();
}

// The messages of one direction and one peer, in their order.
std::vector<Message> chosen(const std::vector<Message>& messages, bool sends, int peer) {
  std::vector<Message> those;
  std::ranges::copy_if(messages, std::back_inserter(those), [&](const Message& message) {
    return message.sends == sends && message.peer == peer;
  });
  return those;
}

Call call_for(const Message* sent, const Message* received) {
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

}  // namespace

void run_together(const std::vector<std::function<void()>>& joins) {
  if (joins.size() == 1) return joins.front()();
  std::vector<std::exception_ptr> errors(joins.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < joins.size(); ++i) {
    threads.emplace_back([&join = joins[i], &error = errors[i]] {
      try {
        join();
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  FirstError first;
  for (const std::exception_ptr& error : errors) first.add(error);
  first.rethrow();
}

std::vector<Call> calls_for(const std::vector<Message>& messages, int rank, int size) {
  std::vector<Call> calls;
  for (int round = 0; round < size; ++round) {
    const std::vector<Message> sent = chosen(messages, true, (rank + round) % size);
    const std::vector<Message> received = chosen(messages, false, (rank - round + size) % size);
    for (std::size_t i = 0; i < std::max(sent.size(), received.size()); ++i) {
      calls.push_back(call_for(i < sent.size() ? &sent[i] : nullptr,
                               i < received.size() ? &received[i] : nullptr));
    }
  }
  return calls;
}

void make(ncclComm& comm, const Call& call, cuda::Stream stream) {
  if (group.depth == 0) return comm.devices.enqueue(call, stream);
  group.calls_of(comm).collectives.emplace_back(call, stream);
}

void make(ncclComm& comm, const Message& message) {
  if (group.depth > 0) {
    group.calls_of(comm).messages.push_back(message);
    return;
  }
  for (const Call& call : calls_for({message}, comm.rank, comm.size)) {
    comm.devices.enqueue(call, message.stream);
  }
}

void join_together(std::function<void()> join) {
  if (group.depth == 0) return join();
  group.joins.push_back(std::move(join));
}

}  // namespace rondo::nccl_programs

extern "C" {

ncclResult_t ncclGroupStart() {
  using namespace rondo::nccl_programs;
  return result_of([] {
    if (has_real_library()) {
      reinterpret_cast<ncclResult_t (*)()>(real_function("ncclGroupStart"))();
    }
    ++group.depth;
  });
}

ncclResult_t ncclGroupEnd() {
  using namespace rondo::nccl_programs;
  const ncclResult_t ended = result_of(end_group);
  if (ended != ncclSuccess) return ended;
  return result_of([] {
    if (has_real_library()) {
      const auto end = reinterpret_cast<ncclResult_t (*)()>(real_function("ncclGroupEnd"));
      if (end() != ncclSuccess)
        throw rondo::TransportError("ncclGroupEnd of RONDO_NCCL_FALLBACK failed");
    }
  });
}
}
