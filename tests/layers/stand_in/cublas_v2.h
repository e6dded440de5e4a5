// The part of cuBLAS that the trainer uses, in plain loops. In place of cuBLAS's own header, by the
// order of include folders.
#pragma once

#include <cstddef>

#include "cuda_runtime_api.h"

enum cublasStatus_t { CUBLAS_STATUS_SUCCESS, CUBLAS_STATUS_INVALID_VALUE };
enum cublasMath_t { CUBLAS_PEDANTIC_MATH };
enum cublasOperation_t { CUBLAS_OP_N, CUBLAS_OP_T };

struct cublasContext {
  cudaStream_t stream = nullptr;
};
using cublasHandle_t = cublasContext*;

const char* cublasGetStatusString(cublasStatus_t code);
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* workspace, std::size_t bytes);
// Column by column: c (m × n) ← op(a) (m × k) · op(b) (k × n) + *keep · c; `scale` must be 1.
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* scale, const float* a, int stride_a,
                           const float* b, int stride_b, const float* keep, float* c, int stride_c);
