#include "samples.hpp"

#include <algorithm>
#include <memory>
#include <utility>

namespace lenet {

void Samples::keep_first(std::size_t count) {
  if (count < labels.size()) labels.resize(count);
}

Samples samples_of_bytes(std::size_t input_elems, std::vector<std::uint8_t> bytes,
                         std::vector<std::uint8_t> labels) {
  const auto all = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  return {input_elems, std::move(labels), [all](std::size_t sample, std::span<float> to) {
            std::transform(all->data() + sample * to.size(), all->data() + (sample + 1) * to.size(),
                           to.begin(),
                           [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
          }};
}

Samples samples_of_floats(std::size_t input_elems, std::vector<float> numbers,
                          std::vector<std::uint8_t> labels) {
  const auto all = std::make_shared<const std::vector<float>>(std::move(numbers));
  return {input_elems, std::move(labels), [all](std::size_t sample, std::span<float> to) {
            std::copy_n(all->data() + sample * to.size(), to.size(), to.begin());
          }};
}

}  // namespace lenet
