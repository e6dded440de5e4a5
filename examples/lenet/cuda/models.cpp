#include "cuda/models.hpp"

#include "graph.hpp"
#include "models/lenet_layers.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"

namespace lenet {

BuildOnGpu lenet_on_gpu() { return build_lenet<cuda::Graph>; }
BuildOnGpu resnet18_on_gpu() { return build_resnet18<cuda::Graph>; }
BuildOnGpu spirals_on_gpu() { return build_spirals<cuda::Graph>; }

}  // namespace lenet
