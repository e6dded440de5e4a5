#include "examples/layers/cpu/onednn_model.hpp"
#include "lenet_layers.hpp"
#include "models.hpp"

namespace lenet {

MakeModel lenet_on_cpu() { return model_by_onednn(build_lenet<Graph>); }

}  // namespace lenet
