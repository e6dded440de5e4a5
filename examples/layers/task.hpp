// What is trained: a model, and the samples that it learns from.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"
#include "parameters.hpp"
#include "samples.hpp"

namespace lenet {

namespace cuda {
class Graph;
}

// Sums each value over the ranks, in place.
using SumOverRanks = std::function<void(std::span<double>)>;

// Makes a model for the CPU, over parameters and gradients of the task's shapes. `sum_over_ranks`:
// where batch normalisation is to be over the samples of all ranks; else empty.
using MakeModel = std::function<std::unique_ptr<Model>(
    ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& sum_over_ranks)>;
// Names the layers of a model on GPUs.
using BuildOnGpu = std::function<void(cuda::Graph&)>;

struct Task {
  std::string name;
  std::size_t input_elems = 0;  // numbers of one sample
  std::size_t classes = 0;
  std::shared_ptr<const ParameterShapes> shapes;
  // The samples in a folder. Throws DataError. Ranks that are threads call this, and make_model, at
  // the same time.
  std::function<Dataset(const std::filesystem::path& folder)> read;
  std::string folder = {};        // where nobody names another; empty: the samples are in no files
  std::size_t bucket_kib = 1024;  // of a bucket of gradients, where nobody names another
  bool normalises = false;        // whether the model has batch normalisation
  MakeModel make_model = {};      // empty: not on CPUs, as in a build without oneDNN
  BuildOnGpu build_on_gpu = {};   // empty: not on GPUs, as in a build without cuDNN
};

// Throws std::runtime_error where the samples are not what the task's model takes.
void require_fit(const Task& task, const Dataset& data);

}  // namespace lenet
