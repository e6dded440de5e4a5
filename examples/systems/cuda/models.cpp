#include "examples/systems/models.hpp"

#include "examples/layers/cuda/graph.hpp"
#include "examples/systems/models/resnet18.hpp"
#include "examples/systems/models/spirals.hpp"

namespace lenet::systems {

BuildOnGpu resnet18_on_gpu() { return build_resnet18<cuda::Graph>; }
BuildOnGpu spirals_on_gpu() { return build_spirals<cuda::Graph>; }

}  // namespace lenet::systems
