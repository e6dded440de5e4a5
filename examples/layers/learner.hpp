// One rank's model, samples and parameters, wherever they live: in host memory, computed by oneDNN,
// or on a GPU, by cuDNN and cuBLAS.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <rondo/cuda.hpp>
#include <rondo/gradients.hpp>
#include <span>
#include <vector>

#include "exchange.hpp"
#include "model.hpp"
#include "parameters.hpp"
#include "samples.hpp"
#include "task.hpp"

namespace lenet {

struct LearnerOptions {
  std::size_t batch_size = 256;
  float rate = 0.2F;
  int passes = 1;  // over parts of a rank's share, whose gradients are added up
  // In which proportion minibatches are dealt to the ranks; empty: equal shares.
  std::vector<double> shares = {};
  bool alone = false;  // whether this rank's gradients are not summed with those of the others
  // Whether batch normalisation is over the samples of all ranks; each learner then sums by this
  // function.
  SumOverRanks sum_norms = {};
  double slowdown = 1;  // this rank takes so many times as long for gradients, by sleeping
};

// What a rank has computed since the epoch began.
struct Computed {
  std::size_t samples = 0;
  // On CPUs, of them, those whose time was taken, and that time, without waiting for other ranks.
  std::size_t timed_samples = 0;
  double seconds = 0;
};

class Learner {
 public:
  Learner() = default;
  Learner(const Learner&) = delete;
  Learner& operator=(const Learner&) = delete;
  virtual ~Learner() = default;

  virtual void set_parameters(const ParameterBlock& parameters) = 0;
  [[nodiscard]] virtual ParameterBlock parameters() = 0;

  // What the model keeps beside its parameters (Model::statistics), of this rank.
  virtual void set_statistics(std::span<const float> /*values*/) {}
  [[nodiscard]] virtual std::vector<float> statistics() { return {}; }

  // Begins an epoch, which takes the training samples in this order.
  virtual void begin_epoch(std::span<const std::uint32_t> order) = 0;
  // Trains on minibatch `index` of the epoch: computes the gradients of this rank's share, sums
  // them over the ranks unless ranks train alone (LearnerOptions::alone), and updates the
  // parameters. Collective.
  virtual void step(std::size_t index) = 0;
  // This rank's sums over the epoch so far.
  [[nodiscard]] virtual BatchResult totals() = 0;
  [[nodiscard]] virtual Computed computed() const { return {}; }

  // How many of these samples of the test set the model classifies correctly.
  [[nodiscard]] virtual std::int64_t correct(std::span<const std::uint32_t> samples) = 0;
};

// A learner on the CPU can do more.
class HostLearner : public Learner {
 public:
  // Returns the sum of the gradients over these samples of the training set, which count in the
  // totals, too; valid until the next call. Neither talks to other ranks nor updates the
  // parameters.
  virtual std::span<const float> gradients(std::span<const std::uint32_t> samples) = 0;
  // From now on minibatches are dealt to the ranks in this proportion.
  virtual void set_shares(std::span<const double> shares) = 0;
  virtual void set_rate(float rate) = 0;
};

// Which share of a minibatch a learner takes.
struct RankOf {
  int rank = 0;
  int size = 1;
};

// Both borrow what they are given, except the task. Each throws std::runtime_error where the
// program was built without its libraries, or the samples are not what the task's model takes.
std::unique_ptr<HostLearner> make_cpu_learner(const Task& task, const Dataset& data,
                                              const LearnerOptions& options, RankOf place,
                                              const MakeExchange& make_exchange);
// Sums gradients as `gradients` says, or, where it is empty, not at all, for comparison. Data,
// parameters and gradients stay on the rank's device.
std::unique_ptr<Learner> make_cuda_learner(const Task& task, const Dataset& data,
                                           const LearnerOptions& options,
                                           rondo::cuda::Communicator& devices,
                                           const std::optional<rondo::GradientOptions>& gradients);

}  // namespace lenet
