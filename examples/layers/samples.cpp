#include "samples.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <utility>

namespace lenet {
namespace {

void require_numbers(std::size_t numbers, std::size_t input_elems, std::size_t samples) {
  if (numbers == input_elems * samples) return;
  throw std::invalid_argument(fmt::format("{} samples of {} numbers each are {} numbers, not {}",
                                          samples, input_elems, samples * input_elems, numbers));
}

}  // namespace

void Samples::keep_first(std::size_t count) {
  if (count < labels.size()) labels.resize(count);
}

Samples samples_of_bytes(std::size_t input_elems, std::vector<std::uint8_t> bytes,
                         std::vector<std::uint8_t> labels) {
  require_numbers(bytes.size(), input_elems, labels.size());
  const auto all = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  return {input_elems, std::move(labels), [all](std::size_t sample, std::span<float> to) {
            std::transform(all->data() + sample * to.size(), all->data() + (sample + 1) * to.size(),
                           to.begin(),
                           [](std::uint8_t byte) { return static_cast<float>(byte) / 255.0F; });
          }};
}

Samples samples_of_floats(std::size_t input_elems, std::vector<float> numbers,
                          std::vector<std::uint8_t> labels) {
  require_numbers(numbers.size(), input_elems, labels.size());
  const auto all = std::make_shared<const std::vector<float>>(std::move(numbers));
  return {input_elems, std::move(labels), [all](std::size_t sample, std::span<float> to) {
            std::copy_n(all->data() + sample * to.size(), to.size(), to.begin());
          }};
}

}  // namespace lenet
