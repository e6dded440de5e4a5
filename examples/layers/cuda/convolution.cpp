#include "convolution.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace lenet::cuda {
namespace {

constexpr int kMost = 10;  // algorithms that cuDNN is asked for

// The first algorithm that gives the same bits on every run.
template <class Performance>
auto deterministic(std::vector<Performance>& found, int count) {
  found.resize(static_cast<std::size_t>(count));
  for (const Performance& one : found) {
    const bool plain = one.mathType == kMath || one.mathType == CUDNN_DEFAULT_MATH;
    if (one.status == CUDNN_STATUS_SUCCESS && one.determinism == CUDNN_DETERMINISTIC && plain) {
      return one.algo;
    }
  }
  throw std::runtime_error("cuDNN has no deterministic algorithm for a convolution of this model");
}

Dims output_of(const Dims& input, int channels, const Window& window) {
  return {input.n, channels, static_cast<int>(window.outputs(input.h)),
          static_cast<int>(window.outputs(input.w))};
}

}  // namespace

Convolution::Convolution(const Libraries& on, const Dims& input, int channels, const Window& window,
                         Purpose purpose)
    : output_dims_(output_of(input, channels, window)),
      input_(shape_of(input)),
      output_(shape_of(output_dims_)) {
  const auto side = static_cast<int>(window.side);
  const auto stride = static_cast<int>(window.stride);
  const auto padding = static_cast<int>(window.padding);
  check(cudnnSetFilter4dDescriptor(filter_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, channels,
                                   input.c, side, side));
  check(cudnnSetConvolution2dDescriptor(kind_.get(), padding, padding, stride, stride, 1, 1,
                                        CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
  check(cudnnSetConvolutionMathType(kind_.get(), kMath));
  choose_forward(on);
  if (purpose == Purpose::training) choose_backward(on);
  workspace_ = Buffer<std::byte>(workspace_bytes_);
}

void Convolution::choose_forward(const Libraries& on) {
  int count = 0;
  std::vector<cudnnConvolutionFwdAlgoPerf_t> forwards(kMost);
  check(cudnnGetConvolutionForwardAlgorithm_v7(on.dnn.get(), input_.get(), filter_.get(),
                                               kind_.get(), output_.get(), kMost, &count,
                                               forwards.data()));
  forward_ = deterministic(forwards, count);
  check(cudnnGetConvolutionForwardWorkspaceSize(on.dnn.get(), input_.get(), filter_.get(),
                                                kind_.get(), output_.get(), forward_,
                                                &workspace_bytes_));
}

void Convolution::choose_backward(const Libraries& on) {
  int count = 0;
  std::vector<cudnnConvolutionBwdFilterAlgoPerf_t> filters(kMost);
  check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(on.dnn.get(), input_.get(), output_.get(),
                                                      kind_.get(), filter_.get(), kMost, &count,
                                                      filters.data()));
  backward_filter_ = deterministic(filters, count);
  std::vector<cudnnConvolutionBwdDataAlgoPerf_t> datas(kMost);
  check(cudnnGetConvolutionBackwardDataAlgorithm_v7(on.dnn.get(), filter_.get(), output_.get(),
                                                    kind_.get(), input_.get(), kMost, &count,
                                                    datas.data()));
  backward_data_ = deterministic(datas, count);
  std::array<std::size_t, 2> bytes{};
  check(cudnnGetConvolutionBackwardFilterWorkspaceSize(on.dnn.get(), input_.get(), output_.get(),
                                                       kind_.get(), filter_.get(), backward_filter_,
                                                       &bytes[0]));
  check(cudnnGetConvolutionBackwardDataWorkspaceSize(on.dnn.get(), filter_.get(), output_.get(),
                                                     kind_.get(), input_.get(), backward_data_,
                                                     &bytes[1]));
  workspace_bytes_ = std::max({workspace_bytes_, bytes[0], bytes[1]});
}

void Convolution::forward(const Libraries& on, const float* input, const float* weights,
                          float* output) const {
  check(cudnnConvolutionForward(on.dnn.get(), &kOne, input_.get(), input, filter_.get(), weights,
                                kind_.get(), forward_, workspace_.get(), workspace_bytes_, &kZero,
                                output_.get(), output));
}

void Convolution::backward_weights(const Libraries& on, const float* input,
                                   const float* output_slopes, float* weight_slopes) const {
  check(cudnnConvolutionBackwardFilter(
      on.dnn.get(), &kOne, input_.get(), input, output_.get(), output_slopes, kind_.get(),
      backward_filter_, workspace_.get(), workspace_bytes_, &kZero, filter_.get(), weight_slopes));
}

void Convolution::backward_input(const Libraries& on, const float* weights,
                                 const float* output_slopes, const float* keep,
                                 float* input_slopes) const {
  check(cudnnConvolutionBackwardData(on.dnn.get(), &kOne, filter_.get(), weights, output_.get(),
                                     output_slopes, kind_.get(), backward_data_, workspace_.get(),
                                     workspace_bytes_, keep, input_.get(), input_slopes));
}

}  // namespace lenet::cuda
