// cuDNN and cuBLAS on one stream, shared by the graphs of a rank; and shapes for them.
#pragma once

#include <cstddef>

#include "handles.hpp"

namespace lenet::cuda {

inline constexpr float kOne = 1;
inline constexpr float kZero = 0;

// Plain f32 arithmetic, as on the CPU: no tf32.
inline constexpr cudnnMathType_t kMath = CUDNN_FMA_MATH;

struct Libraries {
  explicit Libraries(cudaStream_t on) : stream(on), blas_workspace(kBlasWorkspaceBytes) {
    check(cudnnSetStream(dnn.get(), stream));
    check(cublasSetStream(blas.get(), stream));
    check(cublasSetMathMode(blas.get(), CUBLAS_PEDANTIC_MATH));
    check(cublasSetWorkspace(blas.get(), blas_workspace.get(), kBlasWorkspaceBytes));
    check(cudnnSetActivationDescriptor(relu.get(), CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
  }

  // The size that cuBLAS recommends for Hopper.
  static constexpr std::size_t kBlasWorkspaceBytes = std::size_t{32} << 20U;

  cudaStream_t stream;
  Dnn dnn;
  Buffer<std::byte> blas_workspace;
  Blas blas;
  ActivationKind relu;
};

struct Dims {
  int n = 0;
  int c = 0;
  int h = 1;
  int w = 1;

  [[nodiscard]] int pixels() const { return h * w; }
  [[nodiscard]] std::size_t count() const {
    return static_cast<std::size_t>(n) * static_cast<std::size_t>(c) *
           static_cast<std::size_t>(pixels());
  }
};

inline TensorShape shape_of(const Dims& dims) {
  TensorShape shape;
  check(cudnnSetTensor4dDescriptor(shape.get(), CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, dims.n, dims.c,
                                   dims.h, dims.w));
  return shape;
}

}  // namespace lenet::cuda
