// A convolution by cuDNN: its shapes, and algorithms that give the same bits on every run.
#pragma once

#include "examples/layers/layers.hpp"
#include "libraries.hpp"

namespace lenet::cuda {

class Convolution {
 public:
  // A square kernel. Chooses the algorithms, backward ones only for training, and allocates, so
  // that the rest can be captured in a CUDA graph.
  Convolution(const Libraries& on, const Dims& input, int channels, const Window& window,
              Purpose purpose);

  [[nodiscard]] const Dims& output() const { return output_dims_; }

  void forward(const Libraries& on, const float* input, const float* weights, float* output) const;
  void backward_weights(const Libraries& on, const float* input, const float* output_slopes,
                        float* weight_slopes) const;
  // `keep`: 0, or 1 to add to what is there.
  void backward_input(const Libraries& on, const float* weights, const float* output_slopes,
                      const float* keep, float* input_slopes) const;

 private:
  void choose_forward(const Libraries& on);
  void choose_backward(const Libraries& on);

  Dims output_dims_;
  TensorShape input_;
  TensorShape output_;
  FilterShape filter_;
  ConvolutionKind kind_;
  cudnnConvolutionFwdAlgo_t forward_{};
  cudnnConvolutionBwdFilterAlgo_t backward_filter_{};
  cudnnConvolutionBwdDataAlgo_t backward_data_{};
  std::size_t workspace_bytes_ = 0;
  Buffer<std::byte> workspace_;
};

}  // namespace lenet::cuda
