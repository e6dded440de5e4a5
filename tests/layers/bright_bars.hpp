// A small data set with something to learn.
#pragma once

#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "examples/layers/idx.hpp"
#include "examples/layers/learner.hpp"

namespace lenet {

// Images whose bright pixels depend on their class, so that there is something to learn.
inline Samples bright_bars(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;
  for (std::size_t i = 0; i < count; ++i) {
    const auto label = static_cast<std::uint8_t>(random() % kClasses);
    labels.push_back(label);
    for (std::size_t pixel = 0; pixel < kImagePixels; ++pixel) {
      const bool bright = pixel / kImageSide / 3 == label;
      images.push_back(static_cast<std::uint8_t>(random() % 60 + (bright ? 190 : 0)));
    }
  }
  return samples_of_bytes(kImagePixels, std::move(images), std::move(labels));
}

}  // namespace lenet
