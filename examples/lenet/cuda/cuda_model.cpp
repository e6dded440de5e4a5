#include "cuda_model.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "handles.hpp"

namespace lenet::cuda {
namespace {

constexpr float kOne = 1;
constexpr float kZero = 0;
// The size that cuBLAS recommends for Hopper.
constexpr std::size_t kBlasWorkspaceBytes = std::size_t{32} << 20U;

// Plain f32 arithmetic, as on the CPU: no tf32.
constexpr cudnnMathType_t kMath = CUDNN_FMA_MATH;

struct Dims {
  int n = 0;
  int c = 0;
  int h = 1;
  int w = 1;

  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(n) * static_cast<std::size_t>(c) * static_cast<std::size_t>(h) *
           static_cast<std::size_t>(w);
  }
};

TensorShape shape_of(const Dims& dims) {
  TensorShape shape;
  check(cudnnSetTensor4dDescriptor(shape.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, dims.n, dims.c,
                                   dims.h, dims.w));
  return shape;
}

// Activations, and their slopes.
struct Tensor {
  explicit Tensor(const Dims& of)
      : dims(of), shape(shape_of(of)), values(of.count()), slopes(of.count()) {}

  Dims dims;
  TensorShape shape;
  Buffer<float> values;
  Buffer<float> slopes;
};

// The first algorithm that gives the same bits on every run.
template <class Performance>
auto deterministic(const std::vector<Performance>& found) {
  for (const Performance& one : found) {
    const bool plain = one.mathType == kMath || one.mathType == CUDNN_DEFAULT_MATH;
    if (one.status == CUDNN_STATUS_SUCCESS && one.determinism == CUDNN_DETERMINISTIC && plain) {
      return one.algo;
    }
  }
  throw std::runtime_error("cuDNN has no deterministic algorithm for a convolution of this model");
}

}  // namespace

struct Libraries::Handles {
  explicit Handles(cudaStream_t on) : stream(on), blas_workspace(kBlasWorkspaceBytes) {
    check(cudnnSetStream(dnn.get(), stream));
    check(cublasSetStream(blas.get(), stream));
    check(cublasSetMathMode(blas.get(), CUBLAS_PEDANTIC_MATH));
    check(cublasSetWorkspace(blas.get(), blas_workspace.get(), kBlasWorkspaceBytes));
    check(cudnnSetActivationDescriptor(relu.get(), CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
    check(cudnnSetPooling2dDescriptor(pooling.get(), CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING,
                                      CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
  }

  cudaStream_t stream;
  Dnn dnn;
  Buffer<std::byte> blas_workspace;
  Blas blas;
  ActivationKind relu;
  PoolingKind pooling;
};

Libraries::Libraries(cudaStream_t stream) : handles_(std::make_unique<Handles>(stream)) {}
Libraries::~Libraries() = default;

namespace {

using Handles = Libraries::Handles;

struct ParameterPair {
  float* values = nullptr;
  float* slopes = nullptr;
};

struct ParameterPairs {
  DeviceParameters values;
  DeviceParameters slopes;

  [[nodiscard]] ParameterPair operator[](std::size_t which) const {
    return {values[which], slopes[which]};
  }
};

void add_bias_and_relu(Handles& on, const TensorShape& bias_shape, const ParameterPair& bias,
                       Tensor& output, bool relu) {
  check(cudnnAddTensor(on.dnn.get(), &kOne, bias_shape.get(), bias.values, &kOne,
                       output.shape.get(), output.values.get()));
  if (!relu) return;
  check(cudnnActivationForward(on.dnn.get(), on.relu.get(), &kOne, output.shape.get(),
                               output.values.get(), &kZero, output.shape.get(),
                               output.values.get()));
}

// Sets the slopes of the output to 0 where the output is 0, in place.
void relu_backward(Handles& on, Tensor& output) {
  check(cudnnActivationBackward(on.dnn.get(), on.relu.get(), &kOne, output.shape.get(),
                                output.values.get(), output.shape.get(), output.slopes.get(),
                                output.shape.get(), output.values.get(), &kZero, output.shape.get(),
                                output.slopes.get()));
}

void bias_slopes(Handles& on, const TensorShape& bias_shape, const ParameterPair& bias,
                 const Tensor& output) {
  check(cudnnConvolutionBackwardBias(on.dnn.get(), &kOne, output.shape.get(), output.slopes.get(),
                                     &kZero, bias_shape.get(), bias.slopes));
}

class Convolution {
 public:
  // A square kernel of `side`, no padding, and a ReLU after it. The first layer does not compute the slopes of its
  // input.
  Convolution(Handles& on, Tensor& input, int channels, int side, const ParameterPair& weights,
              const ParameterPair& bias, bool first)
      : output({input.dims.n, channels, input.dims.h - side + 1, input.dims.w - side + 1}),
        input_(input),
        weights_(weights),
        bias_(bias),
        bias_shape_(shape_of({1, channels})),
        first_(first) {
    check(cudnnSetFilter4dDescriptor(filter_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, channels,
                                     input.dims.c, side, side));
    check(cudnnSetConvolution2dDescriptor(kind_.get(), 0, 0, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                          CUDNN_DATA_FLOAT));
    check(cudnnSetConvolutionMathType(kind_.get(), kMath));
    choose_algorithms(on);
  }

  void forward(Handles& on) {
    check(cudnnConvolutionForward(on.dnn.get(), &kOne, input_.shape.get(), input_.values.get(),
                                  filter_.get(), weights_.values, kind_.get(), forward_,
                                  workspace_.get(), workspace_bytes_, &kZero, output.shape.get(),
                                  output.values.get()));
    add_bias_and_relu(on, bias_shape_, bias_, output, true);
  }

  // Calls `ready` once the work that computes the parameters' gradients is on the stream.
  template <class Ready>
  void backward(Handles& on, Ready&& ready) {
    relu_backward(on, output);
    bias_slopes(on, bias_shape_, bias_, output);
    check(cudnnConvolutionBackwardFilter(
        on.dnn.get(), &kOne, input_.shape.get(), input_.values.get(), output.shape.get(),
        output.slopes.get(), kind_.get(), backward_filter_, workspace_.get(), workspace_bytes_,
        &kZero, filter_.get(), weights_.slopes));
    ready();
    if (first_) return;
    check(cudnnConvolutionBackwardData(on.dnn.get(), &kOne, filter_.get(), weights_.values,
                                       output.shape.get(), output.slopes.get(), kind_.get(),
                                       backward_data_, workspace_.get(), workspace_bytes_, &kZero,
                                       input_.shape.get(), input_.slopes.get()));
  }

  Tensor output;

 private:
  void choose_algorithms(Handles& on) {
    constexpr int kMost = 10;
    int count = 0;
    std::vector<cudnnConvolutionFwdAlgoPerf_t> forwards(kMost);
    check(cudnnGetConvolutionForwardAlgorithm_v7(on.dnn.get(), input_.shape.get(), filter_.get(),
                                                 kind_.get(), output.shape.get(), kMost, &count,
                                                 forwards.data()));
    forwards.resize(static_cast<std::size_t>(count));
    forward_ = deterministic(forwards);
    std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> filters(kMost);
    check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
        on.dnn.get(), input_.shape.get(), output.shape.get(), kind_.get(), filter_.get(), kMost,
        &count, filters.data()));
    filters.resize(static_cast<std::size_t>(count));
    backward_filter_ = deterministic(filters);
    std::vector<cudnnConvolutionBwdDataAlgoPerf_t> datas(kMost);
    check(cudnnGetConvolutionBackwardDataAlgorithm_v7(
        on.dnn.get(), filter_.get(), output.shape.get(), kind_.get(), input_.shape.get(), kMost,
        &count, datas.data()));
    datas.resize(static_cast<std::size_t>(count));
    backward_data_ = deterministic(datas);

    std::array<std::size_t, 3> bytes{};
    check(cudnnGetConvolutionForwardWorkspaceSize(on.dnn.get(), input_.shape.get(), filter_.get(),
                                                  kind_.get(), output.shape.get(), forward_,
                                                  &bytes[0]));
    check(cudnnGetConvolutionBackwardFilterWorkspaceSize(
        on.dnn.get(), input_.shape.get(), output.shape.get(), kind_.get(), filter_.get(),
        backward_filter_, &bytes[1]));
    check(cudnnGetConvolutionBackwardDataWorkspaceSize(
        on.dnn.get(), filter_.get(), output.shape.get(), kind_.get(), input_.shape.get(),
        backward_data_, &bytes[2]));
    workspace_bytes_ = *std::max_element(bytes.begin(), bytes.end());
    workspace_ = Buffer<std::byte>(workspace_bytes_);
  }

  Tensor& input_;
  ParameterPair weights_;
  ParameterPair bias_;
  TensorShape bias_shape_;
  FilterShape filter_;
  ConvolutionKind kind_;
  bool first_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdFilterAlgo_t backward_filter_{};
  cudnnConvolutionBwdDataAlgo_t backward_data_{};
  std::size_t workspace_bytes_ = 0;
  Buffer<std::byte> workspace_;
};

// Averages over 2×2 pixels; an odd row or column at the end is left out.
class Pooling {
 public:
  explicit Pooling(Tensor& input)
      : output({input.dims.n, input.dims.c, input.dims.h / 2, input.dims.w / 2}), input_(input) {}

  void forward(Handles& on) {
    check(cudnnPoolingForward(on.dnn.get(), on.pooling.get(), &kOne, input_.shape.get(),
                              input_.values.get(), &kZero, output.shape.get(),
                              output.values.get()));
  }
  void backward(Handles& on) {
    check(cudnnPoolingBackward(on.dnn.get(), on.pooling.get(), &kOne, output.shape.get(),
                               output.values.get(), output.shape.get(), output.slopes.get(),
                               input_.shape.get(), input_.values.get(), &kZero, input_.shape.get(),
                               input_.slopes.get()));
  }

  Tensor output;

 private:
  Tensor& input_;
};

// Weights are stored row by row, one row for each input; cuBLAS, which reads columns, sees their transpose.
class Dense {
 public:
  Dense(Tensor& input, int outputs, const ParameterPair& weights, const ParameterPair& bias,
        bool relu)
      : output({input.dims.n, outputs}),
        input_(input),
        inputs_(input.dims.c * input.dims.h * input.dims.w),
        weights_(weights),
        bias_(bias),
        bias_shape_(shape_of({1, outputs})),
        relu_(relu) {}

  void forward(Handles& on) {
    // output = input · weights
    check(cublasSgemm(on.blas.get(), CUBLAS_OP_N, CUBLAS_OP_N, outputs(), samples(), inputs_, &kOne,
                      weights_.values, outputs(), input_.values.get(), inputs_, &kZero,
                      output.values.get(), outputs()));
    add_bias_and_relu(on, bias_shape_, bias_, output, relu_);
  }

  template <class Ready>
  void backward(Handles& on, Ready&& ready) {
    if (relu_) relu_backward(on, output);
    bias_slopes(on, bias_shape_, bias_, output);
    // weights' slopes = inputᵀ · output's slopes
    check(cublasSgemm(on.blas.get(), CUBLAS_OP_N, CUBLAS_OP_T, outputs(), inputs_, samples(), &kOne,
                      output.slopes.get(), outputs(), input_.values.get(), inputs_, &kZero,
                      weights_.slopes, outputs()));
    ready();
    // input's slopes = output's slopes · weightsᵀ
    check(cublasSgemm(on.blas.get(), CUBLAS_OP_T, CUBLAS_OP_N, inputs_, samples(), outputs(), &kOne,
                      weights_.values, outputs(), output.slopes.get(), outputs(), &kZero,
                      input_.slopes.get(), inputs_));
  }

  Tensor output;

 private:
  [[nodiscard]] int samples() const { return output.dims.n; }
  [[nodiscard]] int outputs() const { return output.dims.c; }

  Tensor& input_;
  int inputs_;
  ParameterPair weights_;
  ParameterPair bias_;
  TensorShape bias_shape_;
  bool relu_;
};

}  // namespace

class CudaModel::Layers {
 public:
  Layers(Handles& on, std::size_t batch, const ParameterPairs& pairs)
      : on_(on),
        batch_(batch),
        input_({static_cast<int>(batch), 1, 28, 28}),
        labels_(batch),
        conv1_(on, input_, 20, 3, pairs[kW1], pairs[kB1], true),
        pool1_(conv1_.output),
        conv2_(on, pool1_.output, 50, 5, pairs[kW2], pairs[kB2], false),
        pool2_(conv2_.output),
        dense1_(pool2_.output, 128, pairs[kW3], pairs[kB3], true),
        dense2_(dense1_.output, 10, pairs[kW4], pairs[kB4], false),
        log_probabilities_(batch * 10) {}

  [[nodiscard]] float* images() const { return input_.values.get(); }
  [[nodiscard]] std::uint8_t* labels() const { return labels_.get(); }

  void forward(Totals* totals, bool with_slopes) {
    conv1_.forward(on_);
    pool1_.forward(on_);
    conv2_.forward(on_);
    pool2_.forward(on_);
    dense1_.forward(on_);
    dense2_.forward(on_);
    Tensor& logits = dense2_.output;
    check(cudnnSoftmaxForward(on_.dnn.get(), CUDNN_SOFTMAX_LOG, CUDNN_SOFTMAX_MODE_INSTANCE, &kOne,
                              logits.shape.get(), logits.values.get(), &kZero, logits.shape.get(),
                              log_probabilities_.get()));
    loss_and_slopes(log_probabilities_.get(), labels_.get(), batch_,
                    with_slopes ? logits.slopes.get() : nullptr, totals, on_.stream);
    check(cudaGetLastError());
  }

  void backward(const GradientReady& ready) {
    const auto both = [&ready](Parameter bias, Parameter weights) {
      return [&ready, bias, weights] {
        ready(bias);
        ready(weights);
      };
    };
    dense2_.backward(on_, both(kB4, kW4));
    dense1_.backward(on_, both(kB3, kW3));
    pool2_.backward(on_);
    conv2_.backward(on_, both(kB2, kW2));
    pool1_.backward(on_);
    conv1_.backward(on_, both(kB1, kW1));
  }

 private:
  Handles& on_;
  std::size_t batch_;
  Tensor input_;
  Buffer<std::uint8_t> labels_;
  Convolution conv1_;
  Pooling pool1_;
  Convolution conv2_;
  Pooling pool2_;
  Dense dense1_;
  Dense dense2_;
  Buffer<float> log_probabilities_;
};

CudaModel::CudaModel(Libraries& libraries, std::size_t batch, const DeviceParameters& parameters,
                     const DeviceParameters& gradients)
    : layers_(std::make_unique<Layers>(libraries.handles(), batch,
                                       ParameterPairs{parameters, gradients})) {}
CudaModel::~CudaModel() = default;

float* CudaModel::images() const { return layers_->images(); }
std::uint8_t* CudaModel::labels() const { return layers_->labels(); }
void CudaModel::forward(Totals* totals) { layers_->forward(totals, false); }
void CudaModel::forward_backward(Totals* totals, const GradientReady& ready) {
  layers_->forward(totals, true);
  layers_->backward(ready);
}

}  // namespace lenet::cuda
