// The two threads of a gradient reducer over host memory share this: the one that marks gradients
// and calls finish(), and the one that drives the rounds.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

#include <rondo/communicator.hpp>

#include "communicator/state.hpp"
#include "gradient/bucketed_model.hpp"
#include "gradient/iteration.hpp"
#include "gradient/recorder.hpp"

namespace rondo::detail {

struct ReducerState {
  // `reducer` identifies the reducer to the communicator.
  ReducerState(Communicator& program, const void* reducer, std::vector<Parameter> parameters,
               GradientOptions options)
      : user(reducer),
        communicator(share(program, reducer)),
        model(std::move(parameters), std::move(options), host_memory(communicator)),
        iteration(communicator.rank(), model.parameters(), model.options()),
        recorder(model.options().trace, model.parameters().size()) {}

  // Throws before anything has begun if another reducer is in the middle of an iteration.
  void take_communicator() { state_of(communicator).exclusive_use.take(user, communicator.rank()); }
  void give_back_communicator() { state_of(communicator).exclusive_use.give_back(user); }

  const void* user;
  Communicator communicator;  // the reducer's own, of the caller's state
  BucketedModel model;

  // The lock guards the members from here to `failure`. The thread that drives the rounds also
  // reads `agreed`, which it alone writes while an iteration is open, and the order of arrival once
  // nothing more is marked.
  std::mutex mutex;
  std::condition_variable wake;      // what the driving thread waits for
  std::condition_variable returned;  // what finish() waits for
  Iteration iteration;
  bool done = false;  // the rounds of the iteration have ended
  bool stop = false;  // the thread is to end
  bool reordered = false;
  Complaint agreed;  // by all ranks, as the iteration closed
  std::exception_ptr failure;

  Recorder recorder;  // its header says which part of it the lock guards
};

}  // namespace rondo::detail
