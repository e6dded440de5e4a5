#include "graph.hpp"

#include <utility>

#include "convolution.hpp"

namespace lenet::cuda {
namespace {

// A dense layer's matrix as cuBLAS, which reads column by column, sees it: its transpose if it lies
// row by row.
struct Matrix {
  int inputs = 0;
  int outputs = 0;
  bool by_input = false;  // one row for each input

  // output ← input · weights
  void forward(const Libraries& on, int samples, const float* weights, const float* input,
               float* output) const {
    check(cublasSgemm(on.blas.get(), by_input ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N, outputs,
                      samples, inputs, &kOne, weights, stride(), input, inputs, &kZero, output,
                      outputs));
  }
  // weights' slopes ← inputᵀ · output's slopes
  void backward_weights(const Libraries& on, int samples, const float* input, const float* slopes,
                        float* weight_slopes) const {
    const int rows = by_input ? outputs : inputs;
    const int columns = by_input ? inputs : outputs;
    check(cublasSgemm(on.blas.get(), CUBLAS_OP_N, CUBLAS_OP_T, rows, columns, samples, &kOne,
                      by_input ? slopes : input, rows, by_input ? input : slopes, columns, &kZero,
                      weight_slopes, rows));
  }
  // input's slopes ← output's slopes · weightsᵀ + keep · input's slopes
  void backward_input(const Libraries& on, int samples, const float* weights, const float* slopes,
                      const float* keep, float* input_slopes) const {
    check(cublasSgemm(on.blas.get(), by_input ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, inputs,
                      samples, outputs, &kOne, weights, stride(), slopes, outputs, keep,
                      input_slopes, inputs));
  }

 private:
  [[nodiscard]] int stride() const { return by_input ? outputs : inputs; }
};

}  // namespace

Graph::Graph(const Libraries& on, std::size_t batch, Purpose purpose,
             const DeviceParameters& parameters, const DeviceParameters& gradients,
             BatchNorms& norms)
    : on_(on),
      batch_(static_cast<int>(batch)),
      purpose_(purpose),
      parameters_(parameters),
      gradients_(gradients),
      norms_(norms),
      labels_(batch) {}

Graph::Tensor Graph::activation(const Dims& dims) {
  activations_.push_back(std::make_unique<Activation>(dims));
  return {activations_.size() - 1};
}

const float* Graph::keep_slopes(Activation& input) {
  if (std::exchange(input.has_slopes, true)) return &kOne;
  input.slopes = Buffer<float>(input.dims.count());
  return &kZero;
}

void Graph::add_bias(const Activation& output, const TensorShape& shape,
                     std::size_t parameter) const {
  check(cudnnAddTensor(on_.dnn.get(), &kOne, shape.get(), parameters_[parameter], &kOne,
                       output.shape.get(), output.values.get()));
}

void Graph::stop_at_relu(const Activation& output) const {
  check(cudnnActivationBackward(on_.dnn.get(), on_.relu.get(), &kOne, output.shape.get(),
                                output.values.get(), output.shape.get(), output.slopes.get(),
                                output.shape.get(), output.values.get(), &kZero, output.shape.get(),
                                output.slopes.get()));
}

void Graph::complete_in_order(std::size_t bias, std::size_t weights) {
  joined_backward_.emplace_back([=](const GradientReady& ready) {
    ready(bias);
    ready(weights);
  });
}

Graph::Tensor Graph::inputs(std::int64_t channels, std::int64_t side) {
  const auto pixels = static_cast<int>(side);
  return activation({batch_, static_cast<int>(channels), pixels, pixels});
}

Graph::Tensor Graph::relu(Tensor input) {
  const Tensor result = activation(at(input).dims);
  Activation& from = at(input);
  Activation& to = at(result);
  forward_.emplace_back([this, &from, &to] {
    check(cudnnActivationForward(on_.dnn.get(), on_.relu.get(), &kOne, from.shape.get(),
                                 from.values.get(), &kZero, to.shape.get(), to.values.get()));
  });
  backward_of([this, &from, &to] {
    backward_.emplace_back([this, &from, &to, keep = keep_slopes(from)](const GradientReady&) {
      check(cudnnActivationBackward(on_.dnn.get(), on_.relu.get(), &kOne, to.shape.get(),
                                    to.values.get(), to.shape.get(), to.slopes.get(),
                                    from.shape.get(), from.values.get(), keep, from.shape.get(),
                                    from.slopes.get()));
    });
  });
  return result;
}

Graph::Tensor Graph::convolution(Tensor input, const Weights& weights, const Weights& bias,
                                 const Window& window, bool relu) {
  const auto layer = std::make_shared<const Convolution>(
      on_, at(input).dims, static_cast<int>(weights.dims[0]), window, purpose_);
  const auto bias_shape = std::make_shared<const TensorShape>(shape_of({1, layer->output().c}));
  const Tensor result = activation(layer->output());
  const bool first = input.number == 0;  // nobody wants the slopes of the samples
  Activation& from = at(input);
  Activation& to = at(result);
  forward_.emplace_back([=, this, &from, &to, w = weights.parameter, b = bias.parameter] {
    layer->forward(on_, from.values.get(), parameters_[w], to.values.get());
    add_bias(to, *bias_shape, b);
    if (!relu) return;
    check(cudnnActivationForward(on_.dnn.get(), on_.relu.get(), &kOne, to.shape.get(),
                                 to.values.get(), &kZero, to.shape.get(), to.values.get()));
  });
  backward_of([=, this, &from, &to, w = weights.parameter, b = bias.parameter] {
    const float* keep = first ? nullptr : keep_slopes(from);
    backward_.emplace_back([=, this, &from, &to](const GradientReady& ready) {
      if (relu) stop_at_relu(to);
      check(cudnnConvolutionBackwardBias(on_.dnn.get(), &kOne, to.shape.get(), to.slopes.get(),
                                         &kZero, bias_shape->get(), gradients_[b]));
      layer->backward_weights(on_, from.values.get(), to.slopes.get(), gradients_[w]);
      ready(b);
      ready(w);
      if (first) return;
      layer->backward_input(on_, parameters_[w], to.slopes.get(), keep, from.slopes.get());
    });
    complete_in_order(b, w);
  });
  return result;
}

// Rows and columns at the end that fill no square are left out.
Graph::Tensor Graph::average_pooling(Tensor input, std::int64_t side) {
  const auto size = static_cast<int>(side);
  const auto layer = std::make_shared<const PoolingKind>();
  check(cudnnSetPooling2dDescriptor(layer->get(), CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                                    CUDNN_PROPAGATE_NAN, size, size, 0, 0, size, size));
  const Dims in = at(input).dims;
  const Tensor result = activation({in.n, in.c, in.h / size, in.w / size});
  Activation& from = at(input);
  Activation& to = at(result);
  forward_.emplace_back([=, this, &from, &to] {
    check(cudnnPoolingForward(on_.dnn.get(), layer->get(), &kOne, from.shape.get(),
                              from.values.get(), &kZero, to.shape.get(), to.values.get()));
  });
  backward_of([=, this, &from, &to] {
    backward_.emplace_back([=, this, &from, &to, keep = keep_slopes(from)](const GradientReady&) {
      check(cudnnPoolingBackward(on_.dnn.get(), layer->get(), &kOne, to.shape.get(),
                                 to.values.get(), to.shape.get(), to.slopes.get(), from.shape.get(),
                                 from.values.get(), keep, from.shape.get(), from.slopes.get()));
    });
  });
  return result;
}

Graph::Tensor Graph::dense(Tensor input, const Weights& weights, const Weights& bias, bool relu) {
  const Dims in = at(input).dims;
  const Matrix matrix{in.c * in.pixels(), static_cast<int>(weights.dims[0]),
                      weights.tag != Tag::oihw};
  const auto bias_shape = std::make_shared<const TensorShape>(shape_of({1, matrix.outputs}));
  const Tensor result = activation({in.n, matrix.outputs});
  const bool first = input.number == 0;
  Activation& from = at(input);
  Activation& to = at(result);
  forward_.emplace_back([=, this, &from, &to, w = weights.parameter, b = bias.parameter] {
    matrix.forward(on_, batch_, parameters_[w], from.values.get(), to.values.get());
    add_bias(to, *bias_shape, b);
    if (!relu) return;
    check(cudnnActivationForward(on_.dnn.get(), on_.relu.get(), &kOne, to.shape.get(),
                                 to.values.get(), &kZero, to.shape.get(), to.values.get()));
  });
  backward_of([=, this, &from, &to, w = weights.parameter, b = bias.parameter] {
    const float* keep = first ? nullptr : keep_slopes(from);
    backward_.emplace_back([=, this, &from, &to](const GradientReady& ready) {
      if (relu) stop_at_relu(to);
      check(cudnnConvolutionBackwardBias(on_.dnn.get(), &kOne, to.shape.get(), to.slopes.get(),
                                         &kZero, bias_shape->get(), gradients_[b]));
      matrix.backward_weights(on_, batch_, from.values.get(), to.slopes.get(), gradients_[w]);
      ready(b);
      ready(w);
      if (first) return;
      matrix.backward_input(on_, batch_, parameters_[w], to.slopes.get(), keep, from.slopes.get());
    });
    complete_in_order(b, w);
  });
  return result;
}

Graph::Tensor Graph::batch_norm(Tensor input, std::size_t gamma, std::size_t beta) {
  const std::size_t number = norms_used_++;
  if (norms_.layers.size() == number) norms_.layers.emplace_back(at(input).dims.c);
  const auto pass = std::make_shared<const BatchNormPass>(at(input).dims);
  const auto without_samples = std::make_shared<const BatchNormPass>(Dims{0, at(input).dims.c});
  const Tensor result = activation(at(input).dims);
  Activation& from = at(input);
  Activation& to = at(result);
  forward_.emplace_back([=, this, &from, &to] {
    const BatchNorm& norm = norms_.layers[number];
    if (purpose_ == Purpose::training) {
      pass->train(on_, norms_, norm, from.values.get(), parameters_[gamma], parameters_[beta],
                  to.values.get());
    } else {
      pass->evaluate(on_, norm, from.values.get(), parameters_[gamma], parameters_[beta],
                     to.values.get());
    }
  });
  joined_forward_.emplace_back([=, this] {
    if (!norms_.sum_over_ranks) return;  // the averages of no samples would be 0 / 0
    without_samples->train(on_, norms_, norms_.layers[number], nullptr, parameters_[gamma],
                           parameters_[beta], nullptr);
  });
  backward_of([=, this, &from, &to] {
    const bool adds = keep_slopes(from) == &kOne;
    joined_backward_.emplace_back([=, this](const GradientReady& ready) {
      if (norms_.sum_over_ranks) {
        without_samples->backward(on_, norms_, nullptr, parameters_[gamma], nullptr, false, nullptr,
                                  gradients_[gamma], gradients_[beta]);
      }
      ready(beta);
      ready(gamma);
    });
    backward_.emplace_back([=, this, &from, &to](const GradientReady& ready) {
      pass->backward(on_, norms_, from.values.get(), parameters_[gamma], to.slopes.get(), adds,
                     from.slopes.get(), gradients_[gamma], gradients_[beta]);
      ready(beta);
      ready(gamma);
    });
  });
  return result;
}

Graph::Tensor Graph::add(Tensor one, Tensor other) {
  const Tensor result = activation(at(one).dims);
  Activation& left = at(one);
  Activation& right = at(other);
  Activation& to = at(result);
  forward_.emplace_back([this, &left, &right, &to] {
    cuda::add(left.values.get(), right.values.get(), to.dims.count(), to.values.get(), on_.stream);
    check(cudaGetLastError());
  });
  backward_of([this, &left, &right, &to] {
    for (Activation* from : {&left, &right}) {
      const bool adds = keep_slopes(*from) == &kOne;
      backward_.emplace_back([this, from, &to, adds](const GradientReady&) {
        if (adds) {
          cuda::add(from->slopes.get(), to.slopes.get(), to.dims.count(), from->slopes.get(),
                    on_.stream);
          check(cudaGetLastError());
        } else {
          check(cudaMemcpyAsync(from->slopes.get(), to.slopes.get(),
                                to.dims.count() * sizeof(float), cudaMemcpyDeviceToDevice,
                                on_.stream));
        }
      });
    }
  });
  return result;
}

void Graph::end_in(Tensor logits) {
  logits_ = &at(logits);
  log_probabilities_ = Buffer<float>(logits_->dims.count());
  if (purpose_ == Purpose::training) {
    keep_slopes(*logits_);  // which loss_and_slopes() writes
    for (auto name = tape_.rbegin(); name != tape_.rend(); ++name) (*name)();
  }
  tape_.clear();
}

void Graph::forward(Totals* totals) {
  for (const auto& layer : forward_) layer();
  check(cudnnSoftmaxForward(on_.dnn.get(), CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne,
                            logits_->shape.get(), logits_->values.get(), &kZero,
                            logits_->shape.get(), log_probabilities_.get()));
  loss_and_slopes(log_probabilities_.get(), labels_.get(), static_cast<std::size_t>(batch_),
                  static_cast<std::size_t>(logits_->dims.c), logits_->slopes.get(), totals,
                  on_.stream);
  check(cudaGetLastError());
}

void Graph::backward(const GradientReady& ready) {
  for (const Backward& layer : backward_) layer(ready);
}

void Graph::join_forward() const {
  for (const auto& layer : joined_forward_) layer();
}

void Graph::join_backward(const GradientReady& ready) const {
  for (const Backward& layer : joined_backward_) layer(ready);
}

}  // namespace lenet::cuda
