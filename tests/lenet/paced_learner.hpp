// A learner whose speed and loss a test sets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples/layers/batches.hpp"
#include "examples/layers/learner.hpp"
#include "examples/lenet/lenet_shapes.hpp"

namespace lenet {

// Takes as long for a sample as the test says.
class PacedLearner final : public HostLearner {
 public:
  PacedLearner(int rank, double seconds_of_a_sample)
      : rank_(rank), seconds_of_a_sample_(seconds_of_a_sample) {}

  void set_parameters(const ParameterBlock& parameters) override { parameters_ = parameters; }
  ParameterBlock parameters() override { return parameters_; }
  void begin_epoch(std::span<const std::uint32_t> order) override {
    order_.assign(order.begin(), order.end());
    samples_ = 0;
  }
  void step(std::size_t index) override {
    const auto whole = minibatch(order_, index, 64);
    samples_ += (shares_.empty() ? share(whole, rank_, 3) : share(whole, shares_, rank_)).size();
  }
  BatchResult totals() override { return {.loss = loss_}; }
  void set_loss(double loss) { loss_ = loss; }
  std::int64_t correct(std::span<const std::uint32_t> /*samples*/) override { return 0; }
  void set_rate(float /*rate*/) override {}
  std::span<const float> gradients(std::span<const std::uint32_t> /*samples*/) override {
    return {};
  }
  void set_shares(std::span<const double> shares) override {
    shares_.assign(shares.begin(), shares.end());
  }
  [[nodiscard]] Computed computed() const override {
    return {samples_, samples_, static_cast<double>(samples_) * seconds_of_a_sample_};
  }
  [[nodiscard]] std::size_t samples() const { return samples_; }
  void set_statistics(std::span<const float> values) override {
    statistics_.assign(values.begin(), values.end());
  }
  std::vector<float> statistics() override { return statistics_; }

 private:
  std::vector<float> statistics_;
  int rank_;
  double seconds_of_a_sample_;
  ParameterBlock parameters_{lenet_shapes()};
  std::vector<std::uint32_t> order_;
  std::vector<double> shares_;
  std::size_t samples_ = 0;
  double loss_ = 0;
};

}  // namespace lenet
