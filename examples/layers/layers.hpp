// What the descriptions of models, and the graphs for CPUs and for GPUs, all speak of.
#pragma once

#include <cstdint>

namespace lenet {

// How a convolution's square kernel moves over the image.
struct Window {
  std::int64_t side = 1;
  std::int64_t stride = 1;
  std::int64_t padding = 0;

  [[nodiscard]] std::int64_t outputs(std::int64_t inputs) const {
    return (inputs + 2 * padding - side) / stride + 1;
  }
};

// What a graph is made for.
enum class Purpose : std::uint8_t { training, evaluation };

}  // namespace lenet
