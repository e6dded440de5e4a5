// The samples that a task learns from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace lenet {

// Each sample is some numbers and a class, of which there are 256 at most. The numbers are read as
// they are needed, so that they may be kept in any form: the bytes of pictures need a quarter of
// the room of floats. (On GPUs, all are kept as floats.)
struct Samples {
  std::size_t input_elems = 0;       // numbers of one sample
  std::vector<std::uint8_t> labels;  // each sample's class
  // Writes the numbers of one sample. Ranks that are threads may share samples, and call it at the
  // same time.
  std::function<void(std::size_t sample, std::span<float> to)> read_input;

  [[nodiscard]] std::size_t count() const { return labels.size(); }
  // Forgets all but the first `count`.
  void keep_first(std::size_t count);
};

struct Dataset {
  Samples train;
  Samples test;
};

// `bytes`: `input_elems` for each label, one sample after the other. A byte b is the number b /
// 255. Throws std::invalid_argument where there are more or fewer.
Samples samples_of_bytes(std::size_t input_elems, std::vector<std::uint8_t> bytes,
                         std::vector<std::uint8_t> labels);
// The same of numbers.
Samples samples_of_floats(std::size_t input_elems, std::vector<float> numbers,
                          std::vector<std::uint8_t> labels);

}  // namespace lenet
