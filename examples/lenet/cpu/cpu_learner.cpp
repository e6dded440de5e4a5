#include <algorithm>
#include <utility>
#include <vector>

#include "batches.hpp"
#include "learner.hpp"
#include "model.hpp"

namespace lenet {
namespace {

class CpuLearner final : public Learner {
 public:
  CpuLearner(const Dataset& data, const TrainingOptions& options, RankOf place,
             SumGradients sum_gradients)
      : data_(data),
        options_(options),
        place_(place),
        sum_gradients_(std::move(sum_gradients)),
        model_(parameters_, gradients_) {}

  void set_parameters(const ParameterBlock& parameters) override {
    std::copy(parameters.all().begin(), parameters.all().end(), parameters_.all().begin());
  }
  ParameterBlock parameters() override { return parameters_; }

  void begin_epoch(std::span<const std::uint32_t> order) override {
    order_.assign(order.begin(), order.end());
    totals_ = {};
  }

  void step(std::size_t index) override {
    const auto whole = minibatch(order_, index, options_.batch_size);
    batch_.load(data_.train, share(whole, place_.rank, place_.size));
    const BatchResult mine = model_.forward_backward(batch_.images, batch_.labels);
    totals_.loss += mine.loss;
    totals_.correct += mine.correct;
    sum_gradients_(gradients_.all());
    // The average is over the samples of the whole minibatch, however they are shared.
    descend(parameters_, gradients_, options_.rate / static_cast<float>(whole.size()));
  }

  BatchResult totals() override { return totals_; }

  std::int64_t correct(std::span<const std::uint32_t> samples) override {
    constexpr std::size_t kBatch = 250;
    std::int64_t count = 0;
    for (std::size_t i = 0; i * kBatch < samples.size(); ++i) {
      batch_.load(data_.test, minibatch(samples, i, kBatch));
      count += model_.forward(batch_.images, batch_.labels).correct;
    }
    return count;
  }

 private:
  const Dataset& data_;
  TrainingOptions options_;
  RankOf place_;
  SumGradients sum_gradients_;
  ParameterBlock parameters_;
  ParameterBlock gradients_;
  Model model_;
  Batch batch_;
  std::vector<std::uint32_t> order_;
  BatchResult totals_;
};

}  // namespace

std::unique_ptr<Learner> make_cpu_learner(const Dataset& data, const TrainingOptions& options,
                                          RankOf place, SumGradients sum_gradients) {
  return std::make_unique<CpuLearner>(data, options, place, std::move(sum_gradients));
}

}  // namespace lenet
