#include "models.hpp"

#include <map>

#include "examples/layers/cuda/graph.hpp"
#include "models/lenet_layers.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"

namespace lenet {

BuildOnGpu model_on_gpu(const std::string& name) {
  static const std::map<std::string, BuildOnGpu> kModels{{"lenet", build_lenet<cuda::Graph>},
                                                         {"resnet18", build_resnet18<cuda::Graph>},
                                                         {"spirals", build_spirals<cuda::Graph>}};
  const auto found = kModels.find(name);
  return found == kModels.end() ? BuildOnGpu() : found->second;
}

}  // namespace lenet
