#include "cpu/models.hpp"

#include "models/lenet_layers.hpp"
#include "models/resnet18.hpp"
#include "onednn_model.hpp"

namespace lenet {

MakeModel lenet_on_cpu() {
  return [](ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& /*sum*/) {
    return std::make_unique<OnednnModel>(parameters, gradients, build_lenet<Graph>);
  };
}

MakeModel resnet18_on_cpu() {
  return [](ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& sum) {
    return std::make_unique<OnednnModel>(parameters, gradients, build_resnet18<Graph>, sum);
  };
}

}  // namespace lenet
