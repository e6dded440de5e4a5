#include "bench/overlap/model.hpp"

#include <fmt/format.h>

#include <numeric>

namespace rondo::overlap {
namespace {

// Adds a convolution without bias and its normalisation, of `side` × `side` outputs.
void add_convolution(Model& model, const std::string& name, std::size_t inputs, std::size_t outputs,
                     std::size_t kernel, std::size_t side) {
  const std::size_t weights = inputs * outputs * kernel * kernel;
  const auto pixels = static_cast<double>(side * side);
  model.push_back({name + ".weight", weights, static_cast<double>(weights) * pixels});
  for (const char* part : {".norm.weight", ".norm.bias"}) {
    model.push_back({name + part, outputs, static_cast<double>(outputs) * pixels});
  }
}

void add_stage(Model& model, int stage, int blocks, std::size_t inputs, std::size_t width,
               std::size_t side) {
  for (int block = 0; block < blocks; ++block) {
    const std::string name = fmt::format("layer{}.{}", stage, block);
    const std::size_t from = block == 0 ? inputs : width * 4;
    // From stage 2 on, conv2 of the first block has stride 2, so the outputs of conv1 are twice as
    // wide and high.
    const std::size_t before = block == 0 && stage > 1 ? side * 2 : side;
    add_convolution(model, name + ".conv1", from, width, 1, before);
    add_convolution(model, name + ".conv2", width, width, 3, side);
    add_convolution(model, name + ".conv3", width, width * 4, 1, side);
    if (block == 0) add_convolution(model, name + ".downsample", from, width * 4, 1, side);
  }
}

}  // namespace

Model resnet50() {
  Model model;
  add_convolution(model, "conv1", 3, 64, 7, 112);
  add_stage(model, 1, 3, 64, 64, 56);
  add_stage(model, 2, 4, 256, 128, 28);
  add_stage(model, 3, 6, 512, 256, 14);
  add_stage(model, 4, 3, 1024, 512, 7);
  model.push_back({"fc.weight", std::size_t{2048} * 1000, 2048.0 * 1000});
  model.push_back({"fc.bias", 1000, 1000});
  return model;
}

std::vector<double> ready_times(const Model& model, double compute_us) {
  const double all = std::accumulate(model.begin(), model.end(), 0.0,
                                     [](double sum, const Tensor& t) { return sum + t.work; });
  std::vector<double> ready(model.size());
  double done = 0;
  for (std::size_t i = model.size(); i-- > 0;) {
    done += model[i].work;
    ready[i] = all > 0 ? compute_us * done / all : compute_us;
  }
  return ready;
}

}  // namespace rondo::overlap
