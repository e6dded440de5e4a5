// The part of cuDNN that the trainer uses, in plain loops. In place of cuDNN's own header, by the
// order of include folders.
#pragma once

#include <cstddef>

#include "cuda_runtime_api.h"

enum cudnnStatus_t { CUDNN_STATUS_SUCCESS, CUDNN_STATUS_BAD_PARAM };
enum cudnnDataType_t { CUDNN_DATA_FLOAT };
enum cudnnTensorFormat_t { CUDNN_TENSOR_NCHW };
enum cudnnMathType_t { CUDNN_DEFAULT_MATH, CUDNN_FMA_MATH };
enum cudnnDeterminism_t { CUDNN_NON_DETERMINISTIC, CUDNN_DETERMINISTIC };
enum cudnnActivationMode_t { CUDNN_ACTIVATION_RELU };
enum cudnnNanPropagation_t { CUDNN_PROPAGATE_NAN };
enum cudnnPoolingMode_t { CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING };
enum cudnnConvolutionMode_t { CUDNN_CROSS_CORRELATION };
enum cudnnSoftmaxAlgorithm_t { CUDNN_SOFTMAX_LOG };
enum cudnnSoftmaxMode_t { CUDNN_SOFTMAX_MODE_INSTANCE };
enum cudnnConvolutionFwdAlgo_t { CUDNN_CONVOLUTION_FWD_ALGO_PLAIN };
enum cudnnConvolutionBwdFilterAlgo_t { CUDNN_CONVOLUTION_BWD_FILTER_ALGO_PLAIN };
enum cudnnConvolutionBwdDataAlgo_t { CUDNN_CONVOLUTION_BWD_DATA_ALGO_PLAIN };

struct cudnnContext {
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  int n = 0, c = 0, h = 0, w = 0;
};
struct cudnnFilterStruct {
  int outputs = 0, inputs = 0, h = 0, w = 0;
};
struct cudnnConvolutionStruct {
  int padding = 0, stride = 0;
};
struct cudnnPoolingStruct {
  int side = 0;
};
struct cudnnActivationStruct {};
using cudnnHandle_t = cudnnContext*;
using cudnnTensorDescriptor_t = cudnnTensorStruct*;
using cudnnFilterDescriptor_t = cudnnFilterStruct*;
using cudnnConvolutionDescriptor_t = cudnnConvolutionStruct*;
using cudnnPoolingDescriptor_t = cudnnPoolingStruct*;
using cudnnActivationDescriptor_t = cudnnActivationStruct*;

template <class Algorithm>
struct cudnnPerformance {
  Algorithm algo = {};
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  cudnnDeterminism_t determinism = CUDNN_DETERMINISTIC;
  cudnnMathType_t mathType = CUDNN_FMA_MATH;
};
using cudnnConvolutionFwdAlgoPerf_t = cudnnPerformance<cudnnConvolutionFwdAlgo_t>;
using cudnnConvolutionBwdFilterAlgoPerf_t = cudnnPerformance<cudnnConvolutionBwdFilterAlgo_t>;
using cudnnConvolutionBwdDataAlgoPerf_t = cudnnPerformance<cudnnConvolutionBwdDataAlgo_t>;

const char* cudnnGetErrorString(cudnnStatus_t code);
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream);
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made);
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t made);
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made);
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t made);
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made);
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t made);
cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* made);
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t made);
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* made);
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t made);
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t set, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w);
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t set, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int outputs, int inputs, int h,
                                         int w);
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t set, int padding_h,
                                              int padding_w, int stride_h, int stride_w,
                                              int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t mode, cudnnDataType_t type);
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t set, cudnnMathType_t math);
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t set, cudnnPoolingMode_t mode,
                                          cudnnNanPropagation_t nan, int h, int w, int padding_h,
                                          int padding_w, int stride_h, int stride_w);
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t set,
                                           cudnnActivationMode_t mode, cudnnNanPropagation_t nan,
                                           double ceiling);

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t input, cudnnFilterDescriptor_t filter,
    cudnnConvolutionDescriptor_t kind, cudnnTensorDescriptor_t output, int most, int* count,
    cudnnConvolutionFwdAlgoPerf_t* found);
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, cudnnTensorDescriptor_t input, cudnnTensorDescriptor_t output,
    cudnnConvolutionDescriptor_t kind, cudnnFilterDescriptor_t filter, int most, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* found);
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, cudnnFilterDescriptor_t filter, cudnnTensorDescriptor_t output,
    cudnnConvolutionDescriptor_t kind, cudnnTensorDescriptor_t input, int most, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* found);
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t input, cudnnFilterDescriptor_t filter,
    cudnnConvolutionDescriptor_t kind, cudnnTensorDescriptor_t output,
    cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes);
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, cudnnTensorDescriptor_t input, cudnnTensorDescriptor_t output,
    cudnnConvolutionDescriptor_t kind, cudnnFilterDescriptor_t filter,
    cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes);
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, cudnnFilterDescriptor_t filter, cudnnTensorDescriptor_t output,
    cudnnConvolutionDescriptor_t kind, cudnnTensorDescriptor_t input,
    cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes);

// All of these: to ← *scale · result + *keep · to; `scale` must be 1.
cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* scale,
                                      cudnnTensorDescriptor_t input_shape, const void* input,
                                      cudnnFilterDescriptor_t filter_shape, const void* filter,
                                      cudnnConvolutionDescriptor_t kind,
                                      cudnnConvolutionFwdAlgo_t algorithm, void* workspace,
                                      std::size_t workspace_bytes, const void* keep,
                                      cudnnTensorDescriptor_t output_shape, void* output);
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* scale, cudnnTensorDescriptor_t input_shape, const void* input,
    cudnnTensorDescriptor_t output_shape, const void* output_slopes,
    cudnnConvolutionDescriptor_t kind, cudnnConvolutionBwdFilterAlgo_t algorithm, void* workspace,
    std::size_t workspace_bytes, const void* keep, cudnnFilterDescriptor_t filter_shape,
    void* filter_slopes);
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void* scale,
                                           cudnnFilterDescriptor_t filter_shape, const void* filter,
                                           cudnnTensorDescriptor_t output_shape,
                                           const void* output_slopes,
                                           cudnnConvolutionDescriptor_t kind,
                                           cudnnConvolutionBwdDataAlgo_t algorithm, void* workspace,
                                           std::size_t workspace_bytes, const void* keep,
                                           cudnnTensorDescriptor_t input_shape, void* input_slopes);
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* scale,
                                           cudnnTensorDescriptor_t output_shape,
                                           const void* output_slopes, const void* keep,
                                           cudnnTensorDescriptor_t bias_shape, void* bias_slopes);
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* scale,
                             cudnnTensorDescriptor_t bias_shape, const void* bias, const void* keep,
                             cudnnTensorDescriptor_t output_shape, void* output);
cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t kind,
                                     const void* scale, cudnnTensorDescriptor_t input_shape,
                                     const void* input, const void* keep,
                                     cudnnTensorDescriptor_t output_shape, void* output);
cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t kind,
                                      const void* scale, cudnnTensorDescriptor_t output_shape,
                                      const void* output,
                                      cudnnTensorDescriptor_t output_slopes_shape,
                                      const void* output_slopes,
                                      cudnnTensorDescriptor_t input_shape, const void* input,
                                      const void* keep, cudnnTensorDescriptor_t input_slopes_shape,
                                      void* input_slopes);
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t kind,
                                  const void* scale, cudnnTensorDescriptor_t input_shape,
                                  const void* input, const void* keep,
                                  cudnnTensorDescriptor_t output_shape, void* output);
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t kind,
                                   const void* scale, cudnnTensorDescriptor_t output_shape,
                                   const void* output, cudnnTensorDescriptor_t output_slopes_shape,
                                   const void* output_slopes, cudnnTensorDescriptor_t input_shape,
                                   const void* input, const void* keep,
                                   cudnnTensorDescriptor_t input_slopes_shape, void* input_slopes);
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t algorithm,
                                  cudnnSoftmaxMode_t mode, const void* scale,
                                  cudnnTensorDescriptor_t input_shape, const void* input,
                                  const void* keep, cudnnTensorDescriptor_t output_shape,
                                  void* output);
