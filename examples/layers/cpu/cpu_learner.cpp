#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "examples/layers/batches.hpp"
#include "examples/layers/learner.hpp"

namespace lenet {
namespace {

class CpuLearner final : public HostLearner {
  using Clock = std::chrono::steady_clock;

 public:
  CpuLearner(const Task& task, const Dataset& data, const LearnerOptions& options, RankOf place,
             const MakeExchange& make_exchange)
      : data_(data),
        options_(options),
        place_(place),
        parameters_(task.shapes),
        gradients_(task.shapes),
        added_(task.shapes),
        exchange_(options.alone ? Exchange() : make_exchange(gradients_)),
        model_(task.make_model(parameters_, gradients_, timed(options.sum_norms))) {}

  void set_parameters(const ParameterBlock& parameters) override {
    std::copy(parameters.all().begin(), parameters.all().end(), parameters_.all().begin());
  }
  ParameterBlock parameters() override { return parameters_; }
  void set_statistics(std::span<const float> values) override {
    for (const std::span<float> part : model_->statistics()) {
      std::copy_n(values.begin(), part.size(), part.begin());
      values = values.subspan(part.size());
    }
  }
  std::vector<float> statistics() override {
    std::vector<float> values;
    for (const std::span<float> part : model_->statistics()) {
      values.insert(values.end(), part.begin(), part.end());
    }
    return values;
  }

  void begin_epoch(std::span<const std::uint32_t> order) override {
    order_.assign(order.begin(), order.end());
    totals_ = {};
    computed_ = {};
  }

  void step(std::size_t index) override {
    const auto whole = minibatch(order_, index, options_.batch_size);
    const auto mine = options_.shares.empty() ? share(whole, place_.rank, place_.size)
                                              : share(whole, options_.shares, place_.rank);
    compute(mine, index > 0);
    exchange_.finish();
    // The average is over all samples whose gradients were summed, however they are shared.
    const std::size_t samples = options_.alone ? mine.size() : whole.size();
    descend(parameters_, gradients_,
            options_.rate / static_cast<float>(std::max<std::size_t>(samples, 1)));
  }

  std::span<const float> gradients(std::span<const std::uint32_t> samples) override {
    compute(samples, computed_.samples > 0);
    return gradients_.all();
  }

  void set_shares(std::span<const double> shares) override {
    options_.shares.assign(shares.begin(), shares.end());
    model_->forget_sizes();
  }
  void set_rate(float rate) override { options_.rate = rate; }
  Computed computed() const override {
    Computed all = computed_;
    if (all.timed_samples > 0) return all;
    all.timed_samples = all.samples;  // of the epoch's only step
    all.seconds = first_seconds_;
    return all;
  }

  BatchResult totals() override { return totals_; }

  std::int64_t correct(std::span<const std::uint32_t> samples) override {
    constexpr std::size_t kBatch = 250;
    std::int64_t count = 0;
    for (std::size_t i = 0; i * kBatch < samples.size(); ++i) {
      batch_.load(data_.test, minibatch(samples, i, kBatch));
      count += model_->forward(batch_.inputs, batch_.labels).correct;
    }
    return count;
  }

 private:
  // Leaves in gradients_ those of these samples. `timed`: whether the time counts: the first step
  // of an epoch also makes the buffers for its size, so its time only counts where there is no
  // other step.
  void compute(std::span<const std::uint32_t> mine, bool timed) {
    const auto start = Clock::now();
    waited_ = {};
    if (options_.passes > 1) std::fill(added_.all().begin(), added_.all().end(), 0.0F);
    for (int pass = 0; pass + 1 < options_.passes; ++pass) {
      run_pass(mine, pass, [](std::size_t) {});
      for (std::size_t i = 0; i < gradients_.size(); ++i) add(gradients_[i], added_[i]);
    }
    run_pass(mine, options_.passes - 1, [this](std::size_t parameter) {
      if (options_.passes > 1) add(added_[parameter], gradients_[parameter]);
      exchange_.ready(parameter);
    });
    const auto own_time = [&] { return Clock::now() - start - waited_; };
    if (options_.slowdown > 1) std::this_thread::sleep_for(own_time() * (options_.slowdown - 1));
    computed_.samples += mine.size();
    const double seconds = std::chrono::duration<double>(own_time()).count();
    if (!timed) {
      first_seconds_ = seconds;
      return;
    }
    computed_.timed_samples += mine.size();
    computed_.seconds += seconds;
  }

  // The same, with the time that it takes added to waited_.
  SumOverRanks timed(const SumOverRanks& sum) {
    if (!sum) return {};
    return [this, sum](std::span<double> sums) {
      const auto start = Clock::now();
      sum(sums);
      waited_ += Clock::now() - start;
    };
  }

  static void add(std::span<const float> terms, std::span<float> sums) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
  }

  void run_pass(std::span<const std::uint32_t> mine, int pass, const GradientReady& ready) {
    batch_.load(data_.train, share(mine, pass, options_.passes));
    const bool last = pass + 1 == options_.passes;
    const BatchResult result = model_->forward_backward(
        batch_.inputs, batch_.labels,
        [&] {
          if (last) exchange_.begin();
        },
        ready);
    totals_.loss += result.loss;
    totals_.correct += result.correct;
  }

  const Dataset& data_;
  LearnerOptions options_;
  RankOf place_;
  ParameterBlock parameters_;
  ParameterBlock gradients_;
  ParameterBlock added_;  // of the passes before the last
  Exchange exchange_;
  Clock::duration waited_ = {};  // in sums over the ranks during a step's computation
  std::unique_ptr<Model> model_;
  Batch batch_;
  std::vector<std::uint32_t> order_;
  BatchResult totals_;
  Computed computed_;
  double first_seconds_ = 0;  // of the epoch's first step, which computed_ does not count
};

}  // namespace

std::unique_ptr<HostLearner> make_cpu_learner(const Task& task, const Dataset& data,
                                              const LearnerOptions& options, RankOf place,
                                              const MakeExchange& make_exchange) {
  require_fit(task, data);
  if (!task.make_model) throw std::runtime_error(task.name + " has no model for CPUs");
  const std::size_t named = options.shares.size();
  if (named != 0 && named != static_cast<std::size_t>(place.size)) {
    throw std::runtime_error(fmt::format(
        "there are {} shares, and {} ranks train: name one number for each", named, place.size));
  }
  return std::make_unique<CpuLearner>(task, data, options, place, make_exchange);
}

}  // namespace lenet
