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

// Sums each value over the ranks, in place.
using SumOverRanks = std::function<void(std::span<double>)>;

struct Task {
  std::string name;
  std::shared_ptr<const ParameterShapes> shapes;
  // The samples in a folder. Throws DataError.
  std::function<Dataset(const std::filesystem::path& folder)> read;
  // Makes the model for the CPU, over parameters and gradients of these shapes. `sum_over_ranks`: where batch normalisation
  // is to be over the samples of all ranks; else empty. This function is empty in a build without oneDNN.
  std::function<std::unique_ptr<Model>(ParameterBlock& parameters, ParameterBlock& gradients,
                                       const SumOverRanks& sum_over_ranks)>
      make_model;
};

// LeNet on images of 28×28 pixels in 10 classes.
const Task& lenet_task();
// ResNet-18 on the same.
const Task& resnet18_task();
// By the name of one of them. Throws std::runtime_error.
const Task& task_named(const std::string& name);

}  // namespace lenet
