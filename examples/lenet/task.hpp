// What is trained: a model, and the samples that it learns from. To train something else, make another Task.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "idx.hpp"
#include "model.hpp"
#include "parameters.hpp"

namespace lenet {

namespace cuda {
class Graph;
}

// Sums each value over the ranks, in place.
using SumOverRanks = std::function<void(std::span<double>)>;

// Makes a model for the CPU, over parameters and gradients of the task's shapes. `sum_over_ranks`: where batch
// normalisation is to be over the samples of all ranks; else empty.
using MakeModel = std::function<std::unique_ptr<Model>(
    ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& sum_over_ranks)>;
// Names the layers of a model on GPUs.
using BuildOnGpu = std::function<void(cuda::Graph&)>;

struct Task {
  std::string name;
  std::shared_ptr<const ParameterShapes> shapes;
  // The samples in a folder. Throws DataError.
  std::function<Dataset(const std::filesystem::path& folder)> read;
  MakeModel make_model = {};     // empty in a build without oneDNN
  BuildOnGpu build_on_gpu = {};  // empty in a build without cuDNN
};

// LeNet on images of 28×28 pixels in 10 classes.
const Task& lenet_task();
// ResNet-18 on the same.
const Task& resnet18_task();
// By the name of one of them. Throws std::runtime_error.
const Task& task_named(const std::string& name);

}  // namespace lenet
