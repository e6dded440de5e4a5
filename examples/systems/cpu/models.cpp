#include "models.hpp"

#include "examples/layers/cpu/onednn_model.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"

namespace lenet::systems {

MakeModel resnet18_on_cpu() { return model_by_onednn(build_resnet18<Graph>); }
MakeModel spirals_on_cpu() { return model_by_onednn(build_spirals<Graph>); }

}  // namespace lenet::systems
