// LeNet by cuDNN and cuBLAS, for one batch size: the model of cpu/model.hpp, on a device.
#pragma once

#include <cstdint>
#include <memory>

#include "exchange.hpp"
#include "kernels.hpp"
#include "lenet_shapes.hpp"

namespace lenet::cuda {

// Parameters, or gradients of them, in device memory, in the order of a ParameterBlock.
struct DeviceParameters {
  float* values = nullptr;

  [[nodiscard]] float* operator[](std::size_t parameter) const {
    return values + lenet_shapes()->offset(parameter);
  }
};

// cuDNN and cuBLAS on one stream, shared by the models of a rank.
class Libraries {
 public:
  explicit Libraries(cudaStream_t stream);
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;
  struct Handles;
  [[nodiscard]] Handles& handles() const { return *handles_; }

 private:
  std::unique_ptr<Handles> handles_;
};

// Enqueues on the libraries' stream; borrows its arguments. The constructor allocates the buffers and chooses the
// algorithms, so that forward() and forward_backward() can be captured in a graph.
class CudaModel {
 public:
  CudaModel(Libraries& libraries, std::size_t batch, const DeviceParameters& parameters,
            const DeviceParameters& gradients);
  ~CudaModel();
  CudaModel(const CudaModel&) = delete;
  CudaModel& operator=(const CudaModel&) = delete;

  // Where the batch goes before forward().
  [[nodiscard]] float* images() const;
  [[nodiscard]] std::uint8_t* labels() const;

  // Adds the batch's loss and right answers to `totals`.
  void forward(Totals* totals);
  // The same, and leaves in the gradients the sums over the samples; calls `ready` for each gradient once all work
  // that computes it is on the stream.
  void forward_backward(Totals* totals, const GradientReady& ready);

 private:
  class Layers;
  std::unique_ptr<Layers> layers_;
};

}  // namespace lenet::cuda
