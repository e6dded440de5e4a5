#include <array>
#include <map>
#include <memory>
#include <rondo/cuda_gradient_reducer.hpp>
#include <span>
#include <string>
#include <vector>

#include "batches.hpp"
#include "cuda_model.hpp"
#include "handles.hpp"
#include "learner.hpp"

namespace lenet {
namespace {

using cuda::Buffer;
using cuda::check;
using cuda::CudaModel;
using cuda::Totals;

constexpr std::size_t kEvaluationBatch = 1000;

template <class T>
Buffer<T> upload(const std::vector<T>& values) {
  Buffer<T> buffer(values.size());
  if (!values.empty()) {
    check(
        cudaMemcpy(buffer.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  return buffer;
}

struct ResidentSamples {
  explicit ResidentSamples(const Samples& samples)
      : images(upload(samples.images)), labels(upload(samples.labels)) {}
  [[nodiscard]] cuda::DeviceSamples view() const { return {images.get(), labels.get()}; }

  Buffer<std::uint8_t> images;
  Buffer<std::uint8_t> labels;
};

// A whole step, captured once and replayed.
class StepGraph {
 public:
  template <class Enqueue>
  StepGraph(cudaStream_t stream, Enqueue&& enqueue) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    cudaGraph_t graph = nullptr;
    try {
      enqueue();
    } catch (...) {
      cudaStreamEndCapture(stream, &graph);
      if (graph != nullptr) cudaGraphDestroy(graph);
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph));
    // The reducer's kernels keep their stream's priority.
    const cudaError_t code =
        cudaGraphInstantiate(&executable_, graph, cudaGraphInstantiateFlagUseNodePriority);
    cudaGraphDestroy(graph);
    check(code);
    check(cudaGraphUpload(executable_, stream));
    check(cudaStreamSynchronize(stream));
  }
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;
  ~StepGraph() { cudaGraphExecDestroy(executable_); }
  void launch(cudaStream_t stream) const { check(cudaGraphLaunch(executable_, stream)); }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class CudaLearner final : public Learner {
 public:
  CudaLearner(const Dataset& data, const TrainingOptions& options,
              rondo::cuda::Communicator& devices,
              const std::optional<rondo::GradientOptions>& gradient_options)
      : options_(options),
        devices_(devices),
        train_(data.train),
        test_(data.test),
        train_count_(data.train.count()),
        parameters_(parameter_count()),
        gradients_(parameter_count()),
        order_(std::max(data.train.count(), data.test.count())),
        totals_(1),
        libraries_(stream_.get()) {
    check(cudaDeviceSynchronize());  // uploads and zeroing are complete
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
    ParameterBlock result(lenet_shapes());
    check(cudaMemcpy(result.all().data(), parameters_.get(), result.all().size_bytes(),
                     cudaMemcpyDeviceToHost));
    return result;
  }

  void begin_epoch(std::span<const std::uint32_t> order) override { begin(order); }

  void step(std::size_t index) override {
    const std::size_t begin = index * options_.batch_size;
    const std::size_t whole = std::min(options_.batch_size, train_count_ - begin);
    graph_for(whole).launch(stream_.get());
    bound_run_ahead();
  }

  BatchResult totals() override {
    finish();
    Totals totals;
    check(cudaMemcpy(&totals, totals_.get(), sizeof(totals), cudaMemcpyDeviceToHost));
    return {totals.loss, static_cast<std::int64_t>(totals.correct)};
  }

  std::int64_t correct(std::span<const std::uint32_t> samples) override {
    begin(samples);
    for (std::size_t done = 0; done < samples.size(); done += kEvaluationBatch) {
      const std::size_t count = std::min(kEvaluationBatch, samples.size() - done);
      CudaModel& model = model_for(count);
      cuda::gather(test_.view(), order_.get() + done, totals_.get(), 0, 0, count, model.images(),
                   model.labels(), stream_.get());
      check(cudaGetLastError());
      model.forward(totals_.get());
    }
    return totals().correct;
  }

 private:
  static std::size_t parameter_count() { return lenet_shapes()->count(); }

  [[nodiscard]] std::vector<rondo::Parameter> reducible() const {
    const cuda::DeviceParameters gradients{gradients_.get()};
    std::vector<rondo::Parameter> parameters;
    for (std::size_t i = 0; i < kParameterCount; ++i) {
      const ParameterShape& shape = (*lenet_shapes())[i];
      parameters.emplace_back(shape.name, std::span(gradients[i], shape.count()));
    }
    return parameters;
  }

  // Waits until all enqueued work is done; throws errors of the ranks' communicator.
  void finish() { devices_.wait(stream_.get()); }

  void begin(std::span<const std::uint32_t> order) {
    finish();
    if (!order.empty()) {
      check(cudaMemcpy(order_.get(), order.data(), order.size_bytes(), cudaMemcpyHostToDevice));
    }
    check(cudaMemset(totals_.get(), 0, sizeof(Totals)));
    check(cudaStreamSynchronize(nullptr));
  }

  CudaModel& model_for(std::size_t batch) {
    auto& model = models_[batch];
    if (!model) {
      model =
          std::make_unique<CudaModel>(libraries_, batch, cuda::DeviceParameters{parameters_.get()},
                                      cuda::DeviceParameters{gradients_.get()});
      check(cudaDeviceSynchronize());
    }
    return *model;
  }

  // Limits how many steps are enqueued: with a full launch queue, this thread would block inside CUDA, and with it the
  // thread of another rank that must still start its kernels.
  void bound_run_ahead() {
    constexpr std::size_t kStepsPerMark = 16;
    if (++launched_ % kStepsPerMark != 0) return;
    const std::size_t mark = launched_ / kStepsPerMark % 2;
    check(cudaEventRecord(marks_[mark].get(), stream_.get()));
    check(cudaEventSynchronize(marks_[1 - mark].get()));  // returns at once if never recorded
  }

  // cuDNN and cuBLAS load code and allocate in their first calls, which a capture does not allow. The next
  // step computes the gradients again; the totals are restored.
  void warm_up(CudaModel& model, std::size_t offset, std::size_t count) {
    Totals before;
    check(cudaMemcpy(&before, totals_.get(), sizeof(before), cudaMemcpyDeviceToHost));
    cuda::gather(train_.view(), order_.get(), totals_.get(), options_.batch_size, offset, count,
                 model.images(), model.labels(), stream_.get());
    model.forward_backward(totals_.get(), [](std::size_t) {});
    check(cudaStreamSynchronize(stream_.get()));
    check(cudaMemcpy(totals_.get(), &before, sizeof(before), cudaMemcpyHostToDevice));
  }

  // The graph for whole minibatches of this size. All ranks make a graph at the same step, while no work is running,
  // since making it loads code and allocates.
  StepGraph& graph_for(std::size_t whole) {
    auto& graph = graphs_[whole];
    if (graph) return *graph;
    finish();
    devices_.host().barrier();
    const std::vector<std::uint32_t> positions(whole);
    const auto mine = share(positions, devices_.rank(), devices_.size());
    const auto offset = static_cast<std::size_t>(mine.data() - positions.data());
    CudaModel* model = mine.empty() ? nullptr : &model_for(mine.size());
    if (model != nullptr) warm_up(*model, offset, mine.size());
    devices_.host().barrier();
    graph = std::make_unique<StepGraph>(stream_.get(),
                                        [&] { enqueue_step(model, whole, offset, mine.size()); });
    devices_.host().barrier();
    return *graph;
  }

  void enqueue_step(CudaModel* model, std::size_t whole, std::size_t offset, std::size_t count) {
    const std::size_t parameters = parameter_count();
    const GradientReady ready = [this](std::size_t parameter) {
      if (reducer_) reducer_->mark_ready(parameter, stream_.get());
    };
    if (model != nullptr) {
      cuda::gather(train_.view(), order_.get(), totals_.get(), options_.batch_size, offset, count,
                   model->images(), model->labels(), stream_.get());
      model->forward_backward(totals_.get(), ready);
    } else {
      check(cudaMemsetAsync(gradients_.get(), 0, parameters * sizeof(float), stream_.get()));
      for (std::size_t i = kParameterCount; i-- > 0;) ready(i);
    }
    if (reducer_) reducer_->finish(stream_.get());
    if (all_at_once_) {
      devices_.all_reduce(std::span(gradients_.get(), parameters), rondo::ReduceOp::sum,
                          stream_.get(), *all_at_once_);
    }
    cuda::descend(parameters_.get(), gradients_.get(), parameters,
                  options_.rate / static_cast<float>(whole), totals_.get(), stream_.get());
    check(cudaGetLastError());
  }

  TrainingOptions options_;
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
  std::map<std::size_t, std::unique_ptr<CudaModel>> models_;
  std::map<std::size_t, std::unique_ptr<StepGraph>> graphs_;  // destroyed before what they captured
};

}  // namespace

std::unique_ptr<Learner> make_cuda_learner(const Dataset& data, const TrainingOptions& options,
                                           rondo::cuda::Communicator& devices,
                                           const std::optional<rondo::GradientOptions>& gradients) {
  check(cudaSetDevice(devices.device()));
  return std::make_unique<CudaLearner>(data, options, devices, gradients);
}

}  // namespace lenet
