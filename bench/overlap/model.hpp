// A model as a gradient reducer sees it: names, sizes, and what share of backprop each gradient
// takes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace rondo::overlap {

struct Tensor {
  std::string name;
  std::size_t count = 0;  // f32 elements
  double work = 0;        // of computing its gradient, in any unit
};

// In forward order.
using Model = std::vector<Tensor>;

// ResNet-50 (He et al., 2015) for 1000 classes: 161 tensors, 25,557,032 parameters; work in
// multiply-adds of a picture of 224 x 224.
Model resnet50();

// For each tensor: when its gradient is complete, in microseconds since the start of a backprop of
// `compute_us`.
std::vector<double> ready_times(const Model& model, double compute_us);

}  // namespace rondo::overlap
