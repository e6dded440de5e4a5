// A reducer and the communicator that it was made with: who may make calls, and which of them lives
// longer.

#include <cstddef>
#include <latch>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/gradient/reducer_checks.hpp"

namespace rondo::test {
namespace {

// As users write it: the members move together.
struct Trainer {
  explicit Trainer(Communicator its)
      : comm(std::move(its)), reducer(comm, model.parameters(), small_buckets()) {}

  void step() {
    for (std::size_t i = model.size(); i-- > 0;) mark(i);
    reducer.finish();
    expect_all(model, size);
  }
  void mark(std::size_t i) {
    model.compute(rank, i);
    reducer.mark_ready(i);
  }

  ToyModel<float> model;
  Communicator comm;
  int rank = comm.rank();
  int size = comm.size();
  GradientReducer reducer;
};

class OwningACommunicator : public Gradients {};

TEST_P(OwningACommunicator, MovesAndDestroysItAsItLikes) {
  on_ranks([](Communicator& comm) {
    std::vector<Trainer> trainers;
    trainers.emplace_back(std::move(comm));
    trainers[0].step();
    Trainer moved = std::move(trainers[0]);
    trainers.clear();
    moved.step();
    // In the middle of an iteration.
    moved.mark(moved.model.size() - 1);
    Trainer again = std::move(moved);
    for (std::size_t i = again.model.size() - 1; i-- > 0;) again.mark(i);
    again.reducer.finish();
    expect_all(again.model, again.size);
    // The communicator that is assigned to is left before the reducer that was made with it.
    Trainer other(again.comm.duplicate());
    other.step();
    other = std::move(again);
    other.step();
    {
      const Communicator gone = std::move(other.comm);
    }
    other.step();
  });
}

TEST_P(OwningACommunicator, AReducerHasItToItselfInAnIteration) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets());
    GradientReducer second(comm, model.parameters(), small_buckets());
    std::vector<float> data(100, 1.0F);
    const auto refused = [](const std::string& call, const std::string& text) {
      expect_in(call + ": a gradient reducer has this communicator to itself", text);
    };
    const std::size_t last = model.size() - 1;
    for (int iteration = 0; iteration < 2; ++iteration) {
      comm.all_reduce(data);
      model.compute(comm.rank(), last);
      reducer.mark_ready(last);
      refused("all_reduce", usage_error([&] { comm.all_reduce(data); }));
      refused("all_reduce", usage_error([&] { comm.all_reduce_async(data).wait(); }));
      refused("barrier", usage_error([&] { comm.barrier(); }));
      expect_in("another gradient reducer", usage_error([&] { second.mark_ready(0); }));
      expect_in("another gradient reducer", usage_error([&] { second.finish(); }));
      for (std::size_t i = last; i-- > 0;) {
        model.compute(comm.rank(), i);
        reducer.mark_ready(i);
      }
      reducer.finish();
      expect_all(model, comm.size());
    }
    backward(second, model, comm.rank());
    second.finish();
    expect_all(model, comm.size());
    for (const float element : data) {
      ASSERT_EQ(element, static_cast<float>(comm.size() * comm.size()));
    }
  });
}

// The iteration with a wrong mark is over, too.
TEST_P(OwningACommunicator, ItIsFreeAfterAWrongIteration) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets());
    reducer.mark_ready(0);
    expect_in("was not marked", usage_error([&] { reducer.finish(); }));
    comm.barrier();
    std::optional<GradientReducer> unfinished(std::in_place, comm, model.parameters());
    unfinished->mark_ready(0);
    unfinished.reset();
    // The communicator has ended with the reducer, and says so.
    EXPECT_THROW(comm.barrier(), PeerError);
  });
}

TEST_P(OwningACommunicator, WhoseProgramFailsTellsTheOthers) {
  on_ranks([](Communicator& comm) {
    ToyModel<float> model;
    std::optional<GradientReducer> reducer;
    try {
      Communicator used = comm.duplicate();
      reducer.emplace(used, model.parameters(), small_buckets());
      if (comm.rank() == 0) throw std::runtime_error("the program fails");
      used.barrier();
      EXPECT_EQ(comm.size(), 1);
    } catch (const std::runtime_error& error) {
      // Of the other ranks: although rank 0's reducer still lives.
      if (comm.rank() != 0) expect_in("an exception ended the scope", error.what());
    }
    comm.barrier();
  });
}

// And not that a reducer has it.
TEST_P(OwningACommunicator, ThatHasEndedSaysWhy) {
  std::latch marked(ranks());
  std::latch aborted(1);
  on_ranks([&](Communicator& comm) {
    ToyModel<float> model;
    GradientReducer reducer(comm, model.parameters(), small_buckets());
    reducer.mark_ready(0);
    marked.arrive_and_wait();
    if (comm.rank() == 0) {
      comm.abort("rank 0 gives up");
      aborted.count_down();
    }
    aborted.wait();
    try {
      comm.barrier();
      ADD_FAILURE() << "no error";
    } catch (const PeerError& error) {
      expect_in("rank 0 gives up", error.what());
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, OwningACommunicator, testing::Values(1, 2, 3));

}  // namespace
}  // namespace rondo::test
