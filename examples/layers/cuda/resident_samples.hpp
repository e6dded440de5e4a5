// Samples that stay in a GPU's memory for the whole training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "examples/layers/batches.hpp"
#include "examples/layers/samples.hpp"
#include "handles.hpp"
#include "kernels.hpp"

namespace lenet::cuda {

template <class T>
Buffer<T> upload(const std::vector<T>& values) {
  Buffer<T> buffer(values.size());
  if (!values.empty()) {
    check(
        cudaMemcpy(buffer.get(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  }
  return buffer;
}

// In pieces, so that the host has room for one of them alone.
inline Buffer<float> upload_inputs(const Samples& samples) {
  constexpr std::size_t kPiece = 1024;
  Buffer<float> buffer(samples.count() * samples.input_elems);
  std::vector<std::uint32_t> all(samples.count());
  std::iota(all.begin(), all.end(), 0U);
  Batch batch;
  for (std::size_t done = 0; done < all.size(); done += kPiece) {
    batch.load(samples, minibatch(all, done / kPiece, kPiece));
    check(cudaMemcpy(buffer.get() + done * samples.input_elems, batch.inputs.data(),
                     batch.inputs.size() * sizeof(float), cudaMemcpyHostToDevice));
  }
  return buffer;
}

struct ResidentSamples {
  explicit ResidentSamples(const Samples& samples)
      : input_elems(samples.input_elems),
        inputs(upload_inputs(samples)),
        labels(upload(samples.labels)) {}
  [[nodiscard]] DeviceSamples view() const { return {inputs.get(), labels.get(), input_elems}; }

  std::size_t input_elems;
  Buffer<float> inputs;
  Buffer<std::uint8_t> labels;
};

}  // namespace lenet::cuda
