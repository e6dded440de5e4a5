// Parameter servers: every gradient is applied once, together or on its arrival, and never too
// stale.

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "examples/layers/batches.hpp"
#include "examples/lenet/lenet_shapes.hpp"
#include "examples/lenet/task.hpp"
#include "examples/lenet/trainer.hpp"
#include "examples/systems/server/group.hpp"
#include "examples/systems/server/pairs.hpp"
#include "examples/systems/server/shard.hpp"
#include "examples/systems/server/worker.hpp"
#include "tests/layers/bright_bars.hpp"
#include "tests/layers/same_moves.hpp"
#include "tests/support/ranks.hpp"

namespace lenet::systems {
namespace {

using rondo::Communicator;
using rondo::test::run_ranks;

constexpr std::size_t kSamples = 256;
constexpr std::size_t kBatch = 32;

// The derivative at one sample: small integers, different for every sample and element.
float slope(std::uint32_t sample, std::size_t element) {
  return static_cast<float>((std::size_t{sample} * 13 + element * 7) % 11) - 5;
}

// Its gradients do not depend on the parameters, so that all orders of updates have the same exact
// result.
class ExactLearner final : public HostLearner {
 public:
  explicit ExactLearner(std::size_t fails_after = 1000) : fails_after_(fails_after) {}

  void set_parameters(const ParameterBlock& parameters) override { parameters_ = parameters; }
  ParameterBlock parameters() override { return parameters_; }
  void begin_epoch(std::span<const std::uint32_t> /*order*/) override {}
  void step(std::size_t /*index*/) override { FAIL() << "the servers make the steps"; }
  BatchResult totals() override { return {}; }
  void set_shares(std::span<const double> /*shares*/) override {}
  void set_rate(float /*rate*/) override {}
  std::int64_t correct(std::span<const std::uint32_t> /*samples*/) override { return 0; }
  std::span<const float> gradients(std::span<const std::uint32_t> samples) override {
    if (calls_++ == fails_after_) throw std::runtime_error("this learner fails");
    std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0F);
    for (const std::uint32_t sample : samples) {
      for (std::size_t i = 0; i < lenet_shapes()->count(); ++i) {
        gradients_.all()[i] += slope(sample, i);
      }
    }
    return gradients_.all();
  }
  [[nodiscard]] std::size_t calls() const { return calls_; }

 private:
  std::size_t fails_after_;
  std::size_t calls_ = 0;
  ParameterBlock parameters_{lenet_shapes()};
  ParameterBlock gradients_{lenet_shapes()};
};

ParameterBlock first_parameters() {
  ParameterBlock parameters(lenet_shapes());
  for (std::size_t i = 0; i < lenet_shapes()->count(); ++i) {
    parameters.all()[i] = static_cast<float>(i % 1000);
  }
  return parameters;
}

void run_epoch(ServedWorker& worker, int epoch) {
  const std::vector<std::uint32_t> order = shuffled(kSamples, 5, epoch);
  const std::size_t steps = minibatches(kSamples, kBatch);
  worker.run_epoch({order, steps, static_cast<std::size_t>(epoch - 1) * steps}, [](auto, auto) {});
}

struct Group {
  int ranks;
  int servers;
  bool synchronous = true;
  std::optional<std::uint64_t> most_staleness = std::nullopt;
  std::vector<double> shares = {};
};

// Two epochs of all samples, each of which moves the parameters by its slope.
void expect_all_applied(const Group& group) {
  const std::string what =
      std::to_string(group.ranks) + " ranks, " + std::to_string(group.servers) + " servers";
  ParameterBlock expected = first_parameters();
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    for (std::size_t i = 0; i < lenet_shapes()->count(); ++i) {
      expected.all()[i] -= 2 * slope(sample, i);
    }
  }
  const auto workers = static_cast<std::size_t>(group.ranks - group.servers);
  const WorkerOptions options{
      .batch_size = kBatch,
      .shares = group.shares,
      .asynchronous = !group.synchronous,
      .rate = [](std::size_t, std::size_t) { return static_cast<float>(kBatch); }};
  run_ranks(group.ranks, {}, [&](Communicator& comm) {
    const Staleness staleness = train_with_servers(
        comm, {group.servers, group.synchronous, group.most_staleness, lenet_shapes()->count()},
        [&](Communicator& mine, ServerClient& client) {
          ExactLearner learner;
          ServedWorker worker(client, mine, learner, options);
          ParameterBlock start =
              mine.rank() == 0 ? first_parameters() : ParameterBlock(lenet_shapes());
          worker.begin(start);
          for (int epoch = 1; epoch <= 2; ++epoch) run_epoch(worker, epoch);
          EXPECT_EQ(worker.pushes(), learner.calls());
          const ParameterBlock last = learner.parameters();
          for (std::size_t i = 0; i < lenet_shapes()->count(); ++i) {
            ASSERT_EQ(last.all()[i], expected.all()[i]) << what << ", element " << i;
          }
        });
    const std::uint64_t steps = 2 * kSamples / kBatch;
    const auto servers = static_cast<std::uint64_t>(group.servers);
    EXPECT_EQ(staleness.number(), steps * servers * (group.synchronous ? 1 : workers)) << what;
    const std::uint64_t most =
        group.synchronous ? 0 : group.most_staleness.value_or(steps * workers);
    EXPECT_LE(staleness.greatest, most) << what;
  });
}

TEST(ParameterServers, SynchronousOnesApplyAllGradients) {
  for (const auto& [ranks, servers] : {std::pair(2, 1), {4, 1}, {5, 2}, {4, 3}, {6, 3}}) {
    expect_all_applied({.ranks = ranks, .servers = servers});
  }
  expect_all_applied({.ranks = 4, .servers = 1, .shares = {1, 3, 0}});
}

TEST(ParameterServers, AsynchronousOnesApplyAllGradients) {
  for (const auto& [ranks, servers] : {std::pair(2, 1), {4, 1}, {5, 2}, {4, 3}, {6, 3}}) {
    expect_all_applied({.ranks = ranks, .servers = servers, .synchronous = false});
  }
}

TEST(ParameterServers, NoUpdateIsStalerThanAllowed) {
  for (const std::uint64_t bound : {0U, 1U, 2U, 7U}) {
    for (const int servers : {1, 2, 3}) {
      expect_all_applied({.ranks = 4 + servers,
                          .servers = servers,
                          .synchronous = false,
                          .most_staleness = bound});
    }
  }
}

TEST(ParameterServers, TrainAsRanksDoThatSumTheirGradients) {
  const Dataset data{bright_bars(230, 1), bright_bars(101, 2)};
  const TrainingOptions options{.learner = {.batch_size = 64, .rate = 0.05F}, .seed = 3};
  std::vector<float> alone;
  run_ranks(1, {}, [&](Communicator& comm) {
    const auto learner = make_cpu_learner(lenet_task(), data, options.learner, {0, 1},
                                          [](ParameterBlock&) { return Exchange(); });
    Updates updates(comm, *learner);
    Trainer trainer(comm, data, options, *learner, updates);
    for (int epoch = 1; epoch <= 2; ++epoch) trainer.run_epoch(epoch, [](auto, auto) {});
    const ParameterBlock last = learner->parameters();
    alone.assign(last.all().begin(), last.all().end());
  });
  run_ranks(5, {}, [&](Communicator& comm) {
    train_with_servers(
        comm, {.servers = 2, .elements = lenet_shapes()->count()},
        [&](Communicator& workers, ServerClient& client) {
          const auto learner = make_cpu_learner(lenet_task(), data, options.learner,
                                                {workers.rank(), workers.size()},
                                                [](ParameterBlock&) { return Exchange(); });
          ServedWorker served(client, workers, *learner,
                              {.batch_size = 64, .rate = [](auto, auto) { return 0.05F; }});
          Trainer trainer(workers, data, options, *learner, served);
          for (int epoch = 1; epoch <= 2; ++epoch) trainer.run_epoch(epoch, [](auto, auto) {});
          trainer.agreed_hash();
          const ParameterBlock last = learner->parameters();
          expect_same_moves(last.all(), alone, last.shapes(), options.seed, "three workers");
        });
  });
}

// Whoever fails, all ranks get an error.
TEST(ParameterServers, AWorkerThatFailsIsAnErrorOfAllRanks) {
  for (const bool synchronous : {true, false}) {
    std::vector<std::string> errors(5);
    run_ranks(5, {}, [&](Communicator& comm) {
      try {
        train_with_servers(
            comm, {.servers = 2, .synchronous = synchronous, .elements = lenet_shapes()->count()},
            [&](Communicator& workers, ServerClient& client) {
              ExactLearner learner(workers.rank() == 1 ? 3 : 1000);
              ServedWorker worker(client, workers, learner,
                                  {.batch_size = kBatch,
                                   .asynchronous = !synchronous,
                                   .rate = [](auto, auto) { return 0.2F; }});
              ParameterBlock start = first_parameters();
              worker.begin(start);
              for (int epoch = 1; epoch <= 50; ++epoch) run_epoch(worker, epoch);
            });
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(comm.rank())] = error.what();
      }
    });
    EXPECT_EQ(errors[1], "this learner fails");
    for (const std::string& error : errors) EXPECT_FALSE(error.empty());
    for (const int server : {3, 4}) {
      EXPECT_NE(errors[static_cast<std::size_t>(server)].find("worker "), std::string::npos)
          << errors[static_cast<std::size_t>(server)];
    }
  }
}

TEST(ParameterServers, NoWorkerWouldBeLeft) {
  EXPECT_THROW(roles_of(2, 2), std::runtime_error);
  EXPECT_EQ(roles_of(3, 2).workers, 1);
}

TEST(Shard, SumsInTheOrderOfTheWorkers) {
  Shard shard(2, {.workers = 3});
  shard.set(std::vector<float>{0, 0});
  // In floats, (1e8 + 1) - 1e8 is 0, and (1e8 - 1e8) + 1 is 1.
  const std::vector<std::vector<float>> gradients = {{1e8F, 1e8F}, {1, -1e8F}, {-1e8F, 1}};
  std::vector<std::jthread> threads;
  for (const int worker : {2, 0, 1}) {
    threads.emplace_back(
        [&, worker] { shard.push(worker, gradients[static_cast<std::size_t>(worker)], 1); });
  }
  threads.clear();
  std::vector<float> values(2);
  shard.read(values);
  EXPECT_EQ(values, (std::vector<float>{0, -1}));
}

TEST(Shard, CountsTheUpdatesBetweenPullAndPush) {
  Shard shard(1, {.workers = 3, .synchronous = false});
  std::vector<float> value(1);
  const std::vector<float> one = {1};
  for (const int worker : {0, 1, 2}) shard.pull(worker, value);
  for (const int worker : {2, 0}) shard.push(worker, one, 0.5F);
  shard.pull(0, value);
  EXPECT_EQ(value[0], -1);
  shard.push(1, one, 2);
  shard.push(0, one, 1);
  const Staleness staleness = shard.staleness();
  EXPECT_EQ(staleness.updates[0], 1U);  // worker 2
  EXPECT_EQ(staleness.updates[1], 2U);  // worker 0, twice
  EXPECT_EQ(staleness.updates[2], 1U);  // worker 1
  EXPECT_EQ(staleness.greatest, 2U);
  EXPECT_EQ(staleness.mean(), 1);
  shard.read(value);
  EXPECT_EQ(value[0], -4);
}

TEST(Shard, ItsFailureEndsWhatWaits) {
  Shard shard(1, {.workers = 2});
  const std::vector<float> one = {1};
  std::string error;
  {
    const std::jthread waits([&] {
      try {
        shard.push(0, one, 1);
      } catch (const std::exception& reason) {
        error = reason.what();
      }
    });
    shard.fail(std::make_exception_ptr(std::runtime_error("worker 1 is gone")));
  }
  EXPECT_EQ(error, "worker 1 is gone");
}

TEST(Shard, GivesEachNumberOnce) {
  Shard shard(1, {});
  EXPECT_EQ(shard.take_number(2), 0U);
  EXPECT_EQ(shard.take_number(2), 1U);
  EXPECT_FALSE(shard.take_number(2));
  EXPECT_EQ(shard.take_number(3), 2U);
}

}  // namespace
}  // namespace lenet::systems
