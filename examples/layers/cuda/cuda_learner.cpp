#include <fmt/format.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <rondo/cuda_gradient_reducer.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "examples/layers/batches.hpp"
#include "examples/layers/learner.hpp"
#include "graph.hpp"
#include "resident_samples.hpp"
#include "step_graph.hpp"

namespace lenet {
namespace {

using cuda::Buffer;
using cuda::check;
using cuda::ResidentSamples;
using cuda::StepGraph;
using cuda::Totals;

constexpr std::size_t kEvaluationBatch = 1000;

// Batch normalisation is over this rank's samples alone as long as this lives.
class WithoutRanks {
 public:
  explicit WithoutRanks(cuda::BatchNorms& norms)
      : norms_(norms), sum_over_ranks_(std::exchange(norms.sum_over_ranks, {})) {}
  WithoutRanks(const WithoutRanks&) = delete;
  WithoutRanks& operator=(const WithoutRanks&) = delete;
  ~WithoutRanks() { norms_.sum_over_ranks = std::move(sum_over_ranks_); }

 private:
  cuda::BatchNorms& norms_;
  std::function<void(double*, std::size_t)> sum_over_ranks_;
};

class CudaLearner final : public Learner {
 public:
  CudaLearner(const Task& task, const Dataset& data, const LearnerOptions& options,
              rondo::cuda::Communicator& devices,
              const std::optional<rondo::GradientOptions>& gradient_options)
      : task_(task),
        options_(options),
        devices_(devices),
        train_(data.train),
        test_(data.test),
        train_count_(data.train.count()),
        parameters_(task.shapes->count()),
        gradients_(task.shapes->count()),
        order_(std::max(data.train.count(), data.test.count())),
        totals_(1),
        libraries_(stream_.get()) {
    check(cudaDeviceSynchronize());  // uploads and zeroing are complete
    if (options_.sum_norms) {
      // Of its own, so that these sums do not wait for those of gradients.
      norm_ranks_.emplace(devices_.duplicate());
      norms_.sum_over_ranks = [this](double* sums, std::size_t count) {
        norm_ranks_->all_reduce(std::span(sums, count), rondo::ReduceOp::sum, stream_.get());
      };
    }
    if (!gradient_options) return;
    if (gradient_options->overlap) {
      reducer_.emplace(devices_, reducible(), *gradient_options);
    } else {
      all_at_once_ = rondo::CallOptions{.algorithm = gradient_options->algorithm};
    }
  }

  ~CudaLearner() override { cudaStreamSynchronize(stream_.get()); }

  void set_parameters(const ParameterBlock& parameters) override {
    finish();
    check(cudaMemcpy(parameters_.get(), parameters.all().data(), parameters.all().size_bytes(),
                     cudaMemcpyHostToDevice));
  }

  ParameterBlock parameters() override {
    finish();
    ParameterBlock result(task_.shapes);
    check(cudaMemcpy(result.all().data(), parameters_.get(), result.all().size_bytes(),
                     cudaMemcpyDeviceToHost));
    return result;
  }

  void set_statistics(std::span<const float> values) override {
    finish();
    make_norms();
    for (const Buffer<float>* part : statistics_buffers()) {
      const std::size_t count = part->count();
      check(cudaMemcpy(part->get(), values.data(), count * sizeof(float), cudaMemcpyHostToDevice));
      values = values.subspan(count);
    }
  }

  std::vector<float> statistics() override {
    finish();
    make_norms();
    std::vector<float> values;
    for (const Buffer<float>* part : statistics_buffers()) {
      values.resize(values.size() + part->count());
      check(cudaMemcpy(values.data() + (values.size() - part->count()), part->get(),
                       part->count() * sizeof(float), cudaMemcpyDeviceToHost));
    }
    return values;
  }

  void begin_epoch(std::span<const std::uint32_t> order) override {
    begin(order);
    computed_ = {};
  }

  void step(std::size_t index) override {
    const std::size_t begin = index * options_.batch_size;
    const std::size_t whole = std::min(options_.batch_size, train_count_ - begin);
    graph_for(whole).launch(stream_.get());
    computed_.samples += my_share(whole).count;
    bound_run_ahead();
  }

  BatchResult totals() override {
    finish();
    Totals totals;
    check(cudaMemcpy(&totals, totals_.get(), sizeof(totals), cudaMemcpyDeviceToHost));
    return {totals.loss, static_cast<std::int64_t>(totals.correct)};
  }

  [[nodiscard]] Computed computed() const override { return computed_; }

  std::int64_t correct(std::span<const std::uint32_t> samples) override {
    begin(samples);
    for (std::size_t done = 0; done < samples.size(); done += kEvaluationBatch) {
      const std::size_t count = std::min(kEvaluationBatch, samples.size() - done);
      cuda::Graph& model = model_for(count, Purpose::evaluation);
      cuda::gather(test_.view(), order_.get() + done, totals_.get(), 0, 0, count,
                   model.input_data(), model.labels(), stream_.get());
      check(cudaGetLastError());
      model.forward(totals_.get());
    }
    return totals().correct;
  }

 private:
  [[nodiscard]] cuda::DeviceParameters in(const Buffer<float>& buffer) const {
    return {buffer.get(), task_.shapes.get()};
  }

  [[nodiscard]] std::vector<rondo::Parameter> reducible() const {
    const cuda::DeviceParameters gradients = in(gradients_);
    std::vector<rondo::Parameter> parameters;
    for (std::size_t i = 0; i < task_.shapes->size(); ++i) {
      const ParameterShape& shape = (*task_.shapes)[i];
      parameters.push_back(
          rondo::Parameter::gradient_only(shape.name, std::span(gradients[i], shape.count())));
    }
    return parameters;
  }

  // In the order of Model::statistics, so that a training may go on on a CPU.
  [[nodiscard]] std::vector<const Buffer<float>*> statistics_buffers() const {
    std::vector<const Buffer<float>*> buffers;
    for (const cuda::BatchNorm& norm : norms_.layers) {
      buffers.push_back(&norm.mean);
      buffers.push_back(&norm.variance);
    }
    return buffers;
  }

  // The first graph makes them.
  void make_norms() {
    if (models_.empty()) model_for(1, Purpose::evaluation);
  }

  // Waits until all enqueued work is done; throws errors of the ranks' communicators.
  void finish() {
    devices_.wait(stream_.get());
    if (norm_ranks_) norm_ranks_->check();
  }

  void begin(std::span<const std::uint32_t> order) {
    finish();
    if (!order.empty()) {
      check(cudaMemcpy(order_.get(), order.data(), order.size_bytes(), cudaMemcpyHostToDevice));
    }
    check(cudaMemset(totals_.get(), 0, sizeof(Totals)));
    check(cudaStreamSynchronize(nullptr));
  }

  cuda::Graph& model_for(std::size_t batch, Purpose purpose) {
    auto& model = models_[{batch, purpose}];
    if (model == nullptr) {
      model = std::make_unique<cuda::Graph>(libraries_, batch, purpose, in(parameters_),
                                            in(gradients_), norms_);
      task_.build_on_gpu(*model);
      if (model->input_elems() != task_.input_elems || model->classes() != task_.classes) {
        throw std::runtime_error(fmt::format(
            "{} names {} numbers a sample and {} classes, but its layers take {} and tell {}",
            task_.name, task_.input_elems, task_.classes, model->input_elems(), model->classes()));
      }
      check(cudaDeviceSynchronize());
    }
    return *model;
  }

  // Limits how many steps are enqueued: with a full launch queue, this thread would block inside
  // CUDA, and with it the thread of another rank that must still start its kernels.
  void bound_run_ahead() {
    constexpr std::size_t kStepsPerMark = 16;
    if (++launched_ % kStepsPerMark != 0) return;
    const std::size_t mark = launched_ / kStepsPerMark % 2;
    check(cudaEventRecord(marks_[mark].get(), stream_.get()));
    check(cudaEventSynchronize(marks_[1 - mark].get()));  // returns at once if never recorded
  }

  // A rank's share of a minibatch of `whole` samples: where it begins, and how many samples it has.
  struct Share {
    std::size_t offset = 0;
    std::size_t count = 0;
  };
  [[nodiscard]] Share my_share(std::size_t whole) const {
    const std::vector<std::uint32_t> positions(whole);
    const auto mine = share(positions, devices_.rank(), devices_.size());
    return {static_cast<std::size_t>(mine.data() - positions.data()), mine.size()};
  }

  // Enqueues the gradients of this rank's share.
  void enqueue_gradients(const Share& mine, const GradientReady& ready) {
    cuda::Graph& model = model_for(std::max<std::size_t>(mine.count, 1), Purpose::training);
    if (mine.count == 0) {
      check(cudaMemsetAsync(gradients_.get(), 0, task_.shapes->count() * sizeof(float),
                            stream_.get()));
      model.join_forward();
      model.join_backward(ready);
      return;
    }
    cuda::gather(train_.view(), order_.get(), totals_.get(), options_.batch_size, mine.offset,
                 mine.count, model.input_data(), model.labels(), stream_.get());
    model.forward(totals_.get());
    model.backward(ready);
  }

  // cuDNN and cuBLAS load code and allocate in their first calls, which a capture does not allow.
  // Without sums over the ranks: loading and allocating may wait for all kernels of a device, and
  // so for those that wait for a rank that is not as far. The next step computes the gradients
  // again; totals and moving averages are restored.
  void warm_up(const Share& mine) {
    Totals before;
    check(cudaMemcpy(&before, totals_.get(), sizeof(before), cudaMemcpyDeviceToHost));
    const std::vector<float> averages = statistics();
    {
      const WithoutRanks alone(norms_);
      enqueue_gradients(mine, [](std::size_t) {});
    }
    finish();
    check(cudaMemcpy(totals_.get(), &before, sizeof(before), cudaMemcpyHostToDevice));
    set_statistics(averages);
    check(cudaDeviceSynchronize());
  }

  // The graph for whole minibatches of this size. All ranks make a graph at the same step, while no
  // work is running, since making it loads code and allocates.
  StepGraph& graph_for(std::size_t whole) {
    auto& graph = graphs_[whole];
    if (graph) return *graph;
    finish();
    devices_.host().barrier();
    const Share mine = my_share(whole);
    warm_up(mine);
    devices_.host().barrier();
    graph = std::make_unique<StepGraph>(stream_.get(), [&] { enqueue_step(whole, mine); });
    devices_.host().barrier();
    return *graph;
  }

  void enqueue_step(std::size_t whole, const Share& mine) {
    const std::size_t parameters = task_.shapes->count();
    enqueue_gradients(mine, [this](std::size_t parameter) {
      if (reducer_) reducer_->mark_ready(parameter, stream_.get());
    });
    if (reducer_) reducer_->finish(stream_.get());
    if (all_at_once_) {
      devices_.all_reduce(std::span(gradients_.get(), parameters), rondo::ReduceOp::sum,
                          stream_.get(), *all_at_once_);
    }
    cuda::descend(parameters_.get(), gradients_.get(), parameters,
                  options_.rate / static_cast<float>(whole), totals_.get(), stream_.get());
    check(cudaGetLastError());
  }

  Computed computed_;
  Task task_;
  LearnerOptions options_;
  rondo::cuda::Communicator& devices_;
  std::optional<rondo::CallOptions>
      all_at_once_;  // one sum after backprop; if empty, the reducer sums, or nothing does
  ResidentSamples train_;
  ResidentSamples test_;
  std::size_t train_count_;
  Buffer<float> parameters_;
  Buffer<float> gradients_;
  Buffer<std::uint32_t> order_;
  Buffer<Totals> totals_;
  cuda::Stream stream_;
  std::array<cuda::Event, 2> marks_;  // how far the device has come
  std::size_t launched_ = 0;
  cuda::Libraries libraries_;
  std::optional<rondo::cuda::GradientReducer> reducer_;
  std::optional<rondo::cuda::Communicator> norm_ranks_;  // where norms are over all ranks
  cuda::BatchNorms norms_;
  std::map<std::pair<std::size_t, Purpose>, std::unique_ptr<cuda::Graph>> models_;
  std::map<std::size_t, std::unique_ptr<StepGraph>> graphs_;  // destroyed before what they captured
};

}  // namespace

std::unique_ptr<Learner> make_cuda_learner(const Task& task, const Dataset& data,
                                           const LearnerOptions& options,
                                           rondo::cuda::Communicator& devices,
                                           const std::optional<rondo::GradientOptions>& gradients) {
  require_fit(task, data);
  if (!task.build_on_gpu) throw std::runtime_error(task.name + " has no model for GPUs");
  check(cudaSetDevice(devices.device()));
  return std::make_unique<CudaLearner>(task, data, options, devices, gradients);
}

}  // namespace lenet
