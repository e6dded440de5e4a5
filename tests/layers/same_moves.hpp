// Whether two trainings did the same arithmetic, to rounding.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "examples/layers/parameters.hpp"

namespace lenet {

// Compares how far the parameters have moved since `initialise(…, seed)`, each array by its own
// greatest move: in the few steps of a test LeNet's W3 moves by 4e-6, so its values would agree to
// that even if it were never trained. A value near 0.03 has a last place of 2e-9 or 4e-9, of which
// eight steps leave some, 1e-3 of such a move.
inline void expect_same_moves(std::span<const float> actual, std::span<const float> expected,
                              const std::shared_ptr<const ParameterShapes>& shapes,
                              std::uint64_t seed, const std::string& what) {
  constexpr double kMostDifference = 1e-2;
  ParameterBlock start(shapes);
  initialise(start, seed);
  ASSERT_EQ(actual.size(), shapes->count()) << what;
  ASSERT_EQ(expected.size(), shapes->count()) << what;
  for (std::size_t parameter = 0; parameter < shapes->size(); ++parameter) {
    const std::size_t first = shapes->offset(parameter);
    double greatest = 0;
    double difference = 0;
    for (std::size_t i = 0; i < start[parameter].size(); ++i) {
      const double before = start[parameter][i];
      greatest = std::max(greatest, std::abs(expected[first + i] - before));
      const double apart = std::abs(static_cast<double>(actual[first + i]) -
                                    static_cast<double>(expected[first + i]));
      if (!(apart <= difference)) difference = apart;  // also if it is no number
    }
    const std::string& name = (*shapes)[parameter].name;
    EXPECT_GT(greatest, 0) << what << ": " << name << " has not moved";
    EXPECT_LE(difference, kMostDifference * greatest) << what << ": " << name;
  }
}

}  // namespace lenet
