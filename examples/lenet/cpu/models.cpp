#include "cpu/models.hpp"

#include "models/lenet_layers.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"
#include "onednn_model.hpp"

namespace lenet {

namespace {

MakeModel model_of(BuildGraph build) {
  return [build](ParameterBlock& parameters, ParameterBlock& gradients, const SumOverRanks& sum) {
    return std::make_unique<OnednnModel>(parameters, gradients, build, sum);
  };
}

}  // namespace

MakeModel lenet_on_cpu() { return model_of(build_lenet<Graph>); }
MakeModel resnet18_on_cpu() { return model_of(build_resnet18<Graph>); }
MakeModel spirals_on_cpu() { return model_of(build_spirals<Graph>); }

}  // namespace lenet
