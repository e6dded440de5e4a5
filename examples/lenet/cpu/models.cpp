#include "models.hpp"

#include <map>

#include "examples/layers/cpu/onednn_model.hpp"
#include "models/lenet_layers.hpp"
#include "models/resnet18.hpp"
#include "models/spirals.hpp"

namespace lenet {

MakeModel model_on_cpu(const std::string& name) {
  static const std::map<std::string, BuildGraph> kModels{{"lenet", build_lenet<Graph>},
                                                         {"resnet18", build_resnet18<Graph>},
                                                         {"spirals", build_spirals<Graph>}};
  const auto found = kModels.find(name);
  if (found == kModels.end()) return {};
  return [build = found->second](ParameterBlock& parameters, ParameterBlock& gradients,
                                 const SumOverRanks& sum) {
    return std::make_unique<OnednnModel>(parameters, gradients, build, sum);
  };
}

}  // namespace lenet
