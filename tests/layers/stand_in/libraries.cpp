// cuDNN's and cuBLAS's operations as their documentation defines them, in plain loops, each on its
// stream.
#include <cmath>
#include <vector>

#include "cublas_v2.h"
#include "cudnn.h"
#include "tests/cuda/stand_in.hpp"

namespace {

using Shape = cudnnTensorStruct;

std::size_t count_of(const Shape& of) {
  return static_cast<std::size_t>(of.n) * static_cast<std::size_t>(of.c) *
         static_cast<std::size_t>(of.h) * static_cast<std::size_t>(of.w);
}
std::size_t at(const Shape& of, int n, int c, int y, int x) {
  return ((static_cast<std::size_t>(n) * static_cast<std::size_t>(of.c) +
           static_cast<std::size_t>(c)) *
              static_cast<std::size_t>(of.h) +
          static_cast<std::size_t>(y)) *
             static_cast<std::size_t>(of.w) +
         static_cast<std::size_t>(x);
}
bool same(const Shape& a, const Shape& b) {
  return a.n == b.n && a.c == b.c && a.h == b.h && a.w == b.w;
}

float number(const void* value) { return *static_cast<const float*>(value); }

// What is there counts only if it is kept: it may be anything else.
void put(float& to, float value, float keep) { to = keep == 0 ? value : value + keep * to; }

// Enqueues `work` if the arguments fit.
template <class Work>
cudnnStatus_t on_stream(cudnnHandle_t handle, const void* scale, bool fits, const Work& work) {
  if (!fits || number(scale) != 1) return CUDNN_STATUS_BAD_PARAM;
  rondo::test::enqueue(handle->stream, work);
  return CUDNN_STATUS_SUCCESS;
}

template <class T>
cudnnStatus_t make(T** made) {
  *made = new T;
  return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t destroy(T* made) {
  delete made;
  return CUDNN_STATUS_SUCCESS;
}

template <class Performance>
cudnnStatus_t find(int most, int* count, Performance* found) {
  // One that the trainer must not take, then one that it must.
  if (most < 2) return CUDNN_STATUS_BAD_PARAM;
  found[0].determinism = CUDNN_NON_DETERMINISTIC;
  found[1] = {};
  *count = 2;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t small(std::size_t* bytes) {
  *bytes = 16;
  return CUDNN_STATUS_SUCCESS;
}

// Calls `row` for each row of the output that a filter's element contributes to: with the positions
// of the row's first element in the output, of the filter's element, of the row's first element in
// the input, and how many elements it has.
template <class Row>
void convolve(const Shape& input, const cudnnFilterStruct& filter,
              const cudnnConvolutionStruct& kind, const Shape& output, const Row& row) {
  const Shape filter_shape{filter.outputs, filter.inputs, filter.h, filter.w};
  for (int n = 0; n < output.n; ++n) {
    for (int o = 0; o < output.c; ++o) {
      for (int i = 0; i < input.c; ++i) {
        for (int fy = 0; fy < filter.h; ++fy) {
          for (int fx = 0; fx < filter.w; ++fx) {
            int first = 0;
            while (first * kind.stride + fx < kind.padding) ++first;
            int end = output.w;
            while (end > first && (end - 1) * kind.stride + fx - kind.padding >= input.w) --end;
            for (int oy = 0; oy < output.h; ++oy) {
              const int y = oy * kind.stride + fy - kind.padding;
              if (y < 0 || y >= input.h || end <= first) continue;
              row(at(output, n, o, oy, first), at(filter_shape, o, i, fy, fx),
                  at(input, n, i, y, first * kind.stride + fx - kind.padding),
                  static_cast<std::size_t>(end - first));
            }
          }
        }
      }
    }
  }
}

bool fits(const Shape& input, const cudnnFilterStruct& filter, const cudnnConvolutionStruct& kind,
          const Shape& output) {
  const auto outputs = [&](int size, int side) {
    return (size + 2 * kind.padding - side) / kind.stride + 1;
  };
  return output.n == input.n && output.c == filter.outputs && filter.inputs == input.c &&
         output.h == outputs(input.h, filter.h) && output.w == outputs(input.w, filter.w);
}

void put_all(std::vector<double>& sums, float keep, float* to) {
  for (std::size_t i = 0; i < sums.size(); ++i) put(to[i], static_cast<float>(sums[i]), keep);
}

bool is_pooling(const cudnnPoolingStruct& kind, const Shape& input, const Shape& output) {
  return output.n == input.n && output.c == input.c && output.h == input.h / kind.side &&
         output.w == input.w / kind.side;
}

}  // namespace

const char* cudnnGetErrorString(cudnnStatus_t code) {
  return code == CUDNN_STATUS_SUCCESS ? "no error" : "the stand-in refused";
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* made) { return make(made); }
cudnnStatus_t cudnnDestroy(cudnnHandle_t made) { return destroy(made); }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* made) { return make(made); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t made) { return destroy(made); }
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* made) { return make(made); }
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t made) { return destroy(made); }
cudnnStatus_t cudnnCreateConvolutionDescriptor(cudnnConvolutionDescriptor_t* made) {
  return make(made);
}
cudnnStatus_t cudnnDestroyConvolutionDescriptor(cudnnConvolutionDescriptor_t made) {
  return destroy(made);
}
cudnnStatus_t cudnnCreatePoolingDescriptor(cudnnPoolingDescriptor_t* made) { return make(made); }
cudnnStatus_t cudnnDestroyPoolingDescriptor(cudnnPoolingDescriptor_t made) { return destroy(made); }
cudnnStatus_t cudnnCreateActivationDescriptor(cudnnActivationDescriptor_t* made) {
  return make(made);
}
cudnnStatus_t cudnnDestroyActivationDescriptor(cudnnActivationDescriptor_t made) {
  return destroy(made);
}
cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t set,
                                         cudnnTensorFormat_t /*format*/, cudnnDataType_t /*type*/,
                                         int n, int c, int h, int w) {
  if (n <= 0 || c <= 0 || h <= 0 || w <= 0) return CUDNN_STATUS_BAD_PARAM;
  *set = {n, c, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t set, cudnnDataType_t /*type*/,
                                         cudnnTensorFormat_t /*format*/, int outputs, int inputs,
                                         int h, int w) {
  *set = {outputs, inputs, h, w};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t set, int padding_h,
                                              int padding_w, int stride_h, int stride_w,
                                              int dilation_h, int dilation_w,
                                              cudnnConvolutionMode_t /*mode*/,
                                              cudnnDataType_t /*type*/) {
  const bool square = padding_h == padding_w && stride_h == stride_w;
  if (!square || dilation_h != 1 || dilation_w != 1) return CUDNN_STATUS_BAD_PARAM;
  *set = {padding_h, stride_h};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t /*set*/,
                                          cudnnMathType_t math) {
  return math == CUDNN_FMA_MATH ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}
cudnnStatus_t cudnnSetPooling2dDescriptor(cudnnPoolingDescriptor_t set, cudnnPoolingMode_t /*mode*/,
                                          cudnnNanPropagation_t /*nan*/, int h, int w,
                                          int padding_h, int padding_w, int stride_h,
                                          int stride_w) {
  const bool tiles = h == w && stride_h == h && stride_w == w && padding_h == 0 && padding_w == 0;
  if (!tiles) return CUDNN_STATUS_BAD_PARAM;
  *set = {h};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetActivationDescriptor(cudnnActivationDescriptor_t /*set*/,
                                           cudnnActivationMode_t /*mode*/,
                                           cudnnNanPropagation_t /*nan*/, double /*ceiling*/) {
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t /*handle*/, cudnnTensorDescriptor_t /*input*/, cudnnFilterDescriptor_t /*filter*/,
    cudnnConvolutionDescriptor_t /*kind*/, cudnnTensorDescriptor_t /*output*/, int most, int* count,
    cudnnConvolutionFwdAlgoPerf_t* found) {
  return find(most, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t /*handle*/, cudnnTensorDescriptor_t /*input*/, cudnnTensorDescriptor_t /*output*/,
    cudnnConvolutionDescriptor_t /*kind*/, cudnnFilterDescriptor_t /*filter*/, int most, int* count,
    cudnnConvolutionBwdFilterAlgoPerf_t* found) {
  return find(most, count, found);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t /*handle*/, cudnnFilterDescriptor_t /*filter*/,
    cudnnTensorDescriptor_t /*output*/, cudnnConvolutionDescriptor_t /*kind*/,
    cudnnTensorDescriptor_t /*input*/, int most, int* count,
    cudnnConvolutionBwdDataAlgoPerf_t* found) {
  return find(most, count, found);
}
cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t /*handle*/, cudnnTensorDescriptor_t /*input*/, cudnnFilterDescriptor_t /*filter*/,
    cudnnConvolutionDescriptor_t /*kind*/, cudnnTensorDescriptor_t /*output*/,
    cudnnConvolutionFwdAlgo_t /*algorithm*/, std::size_t* bytes) {
  return small(bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t /*handle*/, cudnnTensorDescriptor_t /*input*/, cudnnTensorDescriptor_t /*output*/,
    cudnnConvolutionDescriptor_t /*kind*/, cudnnFilterDescriptor_t /*filter*/,
    cudnnConvolutionBwdFilterAlgo_t /*algorithm*/, std::size_t* bytes) {
  return small(bytes);
}
cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t /*handle*/, cudnnFilterDescriptor_t /*filter*/,
    cudnnTensorDescriptor_t /*output*/, cudnnConvolutionDescriptor_t /*kind*/,
    cudnnTensorDescriptor_t /*input*/, cudnnConvolutionBwdDataAlgo_t /*algorithm*/,
    std::size_t* bytes) {
  return small(bytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void* scale,
                                      cudnnTensorDescriptor_t input_shape, const void* input,
                                      cudnnFilterDescriptor_t filter_shape, const void* filter,
                                      cudnnConvolutionDescriptor_t kind,
                                      cudnnConvolutionFwdAlgo_t /*algorithm*/, void* /*workspace*/,
                                      std::size_t workspace_bytes, const void* keep,
                                      cudnnTensorDescriptor_t output_shape, void* output) {
  const bool all_fits =
      workspace_bytes >= 16 && fits(*input_shape, *filter_shape, *kind, *output_shape);
  return on_stream(handle, scale, all_fits,
                   [in = *input_shape, f = *filter_shape, k = *kind, out = *output_shape,
                    x = static_cast<const float*>(input), w = static_cast<const float*>(filter),
                    kept = number(keep), y = static_cast<float*>(output)] {
                     std::vector<double> sums(count_of(out));
                     const auto stride = static_cast<std::size_t>(k.stride);
                     convolve(
                         in, f, k, out,
                         [&](std::size_t o, std::size_t weight, std::size_t i, std::size_t count) {
                           const double factor = w[weight];
                           for (std::size_t at = 0; at < count; ++at) {
                             sums[o + at] += factor * static_cast<double>(x[i + at * stride]);
                           }
                         });
                     put_all(sums, kept, y);
                   });
}
cudnnStatus_t cudnnConvolutionBackwardFilter(
    cudnnHandle_t handle, const void* scale, cudnnTensorDescriptor_t input_shape, const void* input,
    cudnnTensorDescriptor_t output_shape, const void* output_slopes,
    cudnnConvolutionDescriptor_t kind, cudnnConvolutionBwdFilterAlgo_t /*algorithm*/,
    void* /*workspace*/, std::size_t workspace_bytes, const void* keep,
    cudnnFilterDescriptor_t filter_shape, void* filter_slopes) {
  const bool all_fits =
      workspace_bytes >= 16 && fits(*input_shape, *filter_shape, *kind, *output_shape);
  return on_stream(
      handle, scale, all_fits,
      [in = *input_shape, f = *filter_shape, k = *kind, out = *output_shape,
       x = static_cast<const float*>(input), slopes = static_cast<const float*>(output_slopes),
       kept = number(keep), to = static_cast<float*>(filter_slopes)] {
        std::vector<double> sums(count_of({f.outputs, f.inputs, f.h, f.w}));
        const auto stride = static_cast<std::size_t>(k.stride);
        convolve(in, f, k, out,
                 [&](std::size_t o, std::size_t weight, std::size_t i, std::size_t count) {
                   double sum = 0;
                   for (std::size_t at = 0; at < count; ++at) {
                     sum += static_cast<double>(slopes[o + at]) *
                            static_cast<double>(x[i + at * stride]);
                   }
                   sums[weight] += sum;
                 });
        put_all(sums, kept, to);
      });
}
cudnnStatus_t cudnnConvolutionBackwardData(
    cudnnHandle_t handle, const void* scale, cudnnFilterDescriptor_t filter_shape,
    const void* filter, cudnnTensorDescriptor_t output_shape, const void* output_slopes,
    cudnnConvolutionDescriptor_t kind, cudnnConvolutionBwdDataAlgo_t /*algorithm*/,
    void* /*workspace*/, std::size_t workspace_bytes, const void* keep,
    cudnnTensorDescriptor_t input_shape, void* input_slopes) {
  const bool all_fits =
      workspace_bytes >= 16 && fits(*input_shape, *filter_shape, *kind, *output_shape);
  return on_stream(
      handle, scale, all_fits,
      [in = *input_shape, f = *filter_shape, k = *kind, out = *output_shape,
       w = static_cast<const float*>(filter), slopes = static_cast<const float*>(output_slopes),
       kept = number(keep), to = static_cast<float*>(input_slopes)] {
        std::vector<double> sums(count_of(in));
        const auto stride = static_cast<std::size_t>(k.stride);
        convolve(in, f, k, out,
                 [&](std::size_t o, std::size_t weight, std::size_t i, std::size_t count) {
                   const double factor = w[weight];
                   for (std::size_t at = 0; at < count; ++at) {
                     sums[i + at * stride] += static_cast<double>(slopes[o + at]) * factor;
                   }
                 });
        put_all(sums, kept, to);
      });
}
cudnnStatus_t cudnnConvolutionBackwardBias(cudnnHandle_t handle, const void* scale,
                                           cudnnTensorDescriptor_t output_shape,
                                           const void* output_slopes, const void* keep,
                                           cudnnTensorDescriptor_t bias_shape, void* bias_slopes) {
  return on_stream(handle, scale, bias_shape->c == output_shape->c,
                   [out = *output_shape, slopes = static_cast<const float*>(output_slopes),
                    kept = number(keep), to = static_cast<float*>(bias_slopes)] {
                     const auto pixels =
                         static_cast<std::size_t>(out.h) * static_cast<std::size_t>(out.w);
                     std::vector<double> sums(static_cast<std::size_t>(out.c));
                     for (std::size_t i = 0; i < count_of(out); ++i) {
                       sums[i / pixels % sums.size()] += static_cast<double>(slopes[i]);
                     }
                     put_all(sums, kept, to);
                   });
}
cudnnStatus_t cudnnAddTensor(cudnnHandle_t handle, const void* scale,
                             cudnnTensorDescriptor_t bias_shape, const void* bias, const void* keep,
                             cudnnTensorDescriptor_t output_shape, void* output) {
  const bool by_channel = bias_shape->n == 1 && bias_shape->h == 1 && bias_shape->w == 1;
  return on_stream(handle, scale, by_channel && bias_shape->c == output_shape->c,
                   [out = *output_shape, b = static_cast<const float*>(bias), kept = number(keep),
                    to = static_cast<float*>(output)] {
                     const auto pixels =
                         static_cast<std::size_t>(out.h) * static_cast<std::size_t>(out.w);
                     const auto channels = static_cast<std::size_t>(out.c);
                     for (std::size_t i = 0; i < count_of(out); ++i) {
                       put(to[i], b[i / pixels % channels], kept);
                     }
                   });
}
cudnnStatus_t cudnnActivationForward(cudnnHandle_t handle, cudnnActivationDescriptor_t /*kind*/,
                                     const void* scale, cudnnTensorDescriptor_t input_shape,
                                     const void* input, const void* keep,
                                     cudnnTensorDescriptor_t output_shape, void* output) {
  return on_stream(handle, scale, same(*input_shape, *output_shape),
                   [count = count_of(*input_shape), x = static_cast<const float*>(input),
                    kept = number(keep), y = static_cast<float*>(output)] {
                     for (std::size_t i = 0; i < count; ++i) put(y[i], std::fmax(x[i], 0.0F), kept);
                   });
}
cudnnStatus_t cudnnActivationBackward(cudnnHandle_t handle, cudnnActivationDescriptor_t /*kind*/,
                                      const void* scale, cudnnTensorDescriptor_t output_shape,
                                      const void* output,
                                      cudnnTensorDescriptor_t output_slopes_shape,
                                      const void* output_slopes,
                                      cudnnTensorDescriptor_t input_shape, const void* /*input*/,
                                      const void* keep, cudnnTensorDescriptor_t input_slopes_shape,
                                      void* input_slopes) {
  const bool all_same = same(*output_shape, *output_slopes_shape) &&
                        same(*output_shape, *input_shape) &&
                        same(*output_shape, *input_slopes_shape);
  return on_stream(handle, scale, all_same,
                   [count = count_of(*output_shape), y = static_cast<const float*>(output),
                    slopes = static_cast<const float*>(output_slopes), kept = number(keep),
                    to = static_cast<float*>(input_slopes)] {
                     for (std::size_t i = 0; i < count; ++i) {
                       put(to[i], y[i] > 0 ? slopes[i] : 0.0F, kept);
                     }
                   });
}
cudnnStatus_t cudnnPoolingForward(cudnnHandle_t handle, cudnnPoolingDescriptor_t kind,
                                  const void* scale, cudnnTensorDescriptor_t input_shape,
                                  const void* input, const void* keep,
                                  cudnnTensorDescriptor_t output_shape, void* output) {
  return on_stream(
      handle, scale, is_pooling(*kind, *input_shape, *output_shape),
      [in = *input_shape, out = *output_shape, side = kind->side,
       x = static_cast<const float*>(input), kept = number(keep), y = static_cast<float*>(output)] {
        std::vector<double> sums(count_of(out));
        for (int n = 0; n < out.n; ++n) {
          for (int c = 0; c < out.c; ++c) {
            for (int row = 0; row < out.h * side; ++row) {
              for (int column = 0; column < out.w * side; ++column) {
                sums[at(out, n, c, row / side, column / side)] +=
                    static_cast<double>(x[at(in, n, c, row, column)]) / (side * side);
              }
            }
          }
        }
        put_all(sums, kept, y);
      });
}
cudnnStatus_t cudnnPoolingBackward(cudnnHandle_t handle, cudnnPoolingDescriptor_t kind,
                                   const void* scale, cudnnTensorDescriptor_t output_shape,
                                   const void* /*output*/,
                                   cudnnTensorDescriptor_t output_slopes_shape,
                                   const void* output_slopes, cudnnTensorDescriptor_t input_shape,
                                   const void* /*input*/, const void* keep,
                                   cudnnTensorDescriptor_t input_slopes_shape, void* input_slopes) {
  const bool all_fits = is_pooling(*kind, *input_shape, *output_shape) &&
                        same(*output_shape, *output_slopes_shape) &&
                        same(*input_shape, *input_slopes_shape);
  return on_stream(
      handle, scale, all_fits,
      [in = *input_shape, out = *output_shape, side = kind->side,
       slopes = static_cast<const float*>(output_slopes), kept = number(keep),
       to = static_cast<float*>(input_slopes)] {
        std::vector<double> shares(count_of(in));
        for (int n = 0; n < out.n; ++n) {
          for (int c = 0; c < out.c; ++c) {
            for (int row = 0; row < out.h * side; ++row) {
              for (int column = 0; column < out.w * side; ++column) {
                shares[at(in, n, c, row, column)] =
                    static_cast<double>(slopes[at(out, n, c, row / side, column / side)]) /
                    (side * side);
              }
            }
          }
        }
        put_all(shares, kept, to);
      });
}
cudnnStatus_t cudnnSoftmaxForward(cudnnHandle_t handle, cudnnSoftmaxAlgorithm_t /*algorithm*/,
                                  cudnnSoftmaxMode_t /*mode*/, const void* scale,
                                  cudnnTensorDescriptor_t input_shape, const void* input,
                                  const void* keep, cudnnTensorDescriptor_t output_shape,
                                  void* output) {
  return on_stream(
      handle, scale, same(*input_shape, *output_shape) && number(keep) == 0,
      [in = *input_shape, x = static_cast<const float*>(input), y = static_cast<float*>(output)] {
        const std::size_t row = count_of(in) / static_cast<std::size_t>(in.n);
        for (std::size_t first = 0; first < count_of(in); first += row) {
          double greatest = static_cast<double>(x[first]);
          for (std::size_t i = first; i < first + row; ++i) {
            greatest = std::fmax(greatest, static_cast<double>(x[i]));
          }
          double sum = 0;
          for (std::size_t i = first; i < first + row; ++i) {
            sum += std::exp(static_cast<double>(x[i]) - greatest);
          }
          for (std::size_t i = first; i < first + row; ++i) {
            y[i] = static_cast<float>(static_cast<double>(x[i]) - greatest - std::log(sum));
          }
        }
      });
}

const char* cublasGetStatusString(cublasStatus_t code) {
  return code == CUBLAS_STATUS_SUCCESS ? "no error" : "the stand-in refused";
}
cublasStatus_t cublasCreate_v2(cublasHandle_t* handle) {
  *handle = new cublasContext;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t /*handle*/, cublasMath_t /*mode*/) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t /*handle*/, void* /*workspace*/,
                                  std::size_t /*bytes*/) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const float* scale, const float* a, int stride_a,
                           const float* b, int stride_b, const float* keep, float* c,
                           int stride_c) {
  const bool fits = stride_a >= (op_a == CUBLAS_OP_N ? m : k) &&
                    stride_b >= (op_b == CUBLAS_OP_N ? k : n) && stride_c >= m;
  if (!fits || *scale != 1) return CUBLAS_STATUS_INVALID_VALUE;
  rondo::test::enqueue(handle->stream, [=, kept = *keep] {
    const auto element = [](const float* of, int stride, int row, int column) {
      return static_cast<double>(
          of[static_cast<std::size_t>(column) * static_cast<std::size_t>(stride) +
             static_cast<std::size_t>(row)]);
    };
    for (int column = 0; column < n; ++column) {
      for (int row = 0; row < m; ++row) {
        double sum = 0;
        for (int i = 0; i < k; ++i) {
          sum +=
              (op_a == CUBLAS_OP_N ? element(a, stride_a, row, i) : element(a, stride_a, i, row)) *
              (op_b == CUBLAS_OP_N ? element(b, stride_b, i, column)
                                   : element(b, stride_b, column, i));
        }
        put(c[static_cast<std::size_t>(column) * static_cast<std::size_t>(stride_c) +
              static_cast<std::size_t>(row)],
            static_cast<float>(sum), kept);
      }
    }
  });
  return CUBLAS_STATUS_SUCCESS;
}
