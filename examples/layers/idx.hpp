// The IDX files of MNIST and similar data sets, gzipped or not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "samples.hpp"

namespace lenet {

inline constexpr std::size_t kImageSide = 28;
inline constexpr std::size_t kImagePixels = kImageSide * kImageSide;
inline constexpr std::size_t kClasses = 10;

// A data file that is missing, truncated or not what it should be; says which file and what is
// wrong.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct IdxArray {
  std::vector<std::uint32_t> dims;
  std::vector<std::uint8_t> values;
};

// Reads an IDX file of unsigned bytes with `dimensions` dimensions. Memory grows with what the file
// holds, never with what its header claims. Throws DataError.
IdxArray read_idx(const std::filesystem::path& file, std::size_t dimensions);

// Reads train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, t10k-… from `directory`, and checks
// that they belong together. Throws DataError.
Dataset read_images(const std::filesystem::path& directory);

}  // namespace lenet
