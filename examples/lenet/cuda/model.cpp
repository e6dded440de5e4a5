#include "examples/layers/cuda/graph.hpp"
#include "examples/lenet/lenet_layers.hpp"
#include "examples/lenet/models.hpp"

namespace lenet {

BuildOnGpu lenet_on_gpu() { return build_lenet<cuda::Graph>; }

}  // namespace lenet
