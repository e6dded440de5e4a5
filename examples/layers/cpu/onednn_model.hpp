// A model of layers in a Graph.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "examples/layers/model.hpp"
#include "examples/layers/task.hpp"
#include "graph.hpp"

namespace lenet {

// Names the layers of a model, from inputs() to end_in().
using BuildGraph = std::function<void(Graph&)>;

// Buffers and primitives are made once for each batch size seen.
class OnednnModel final : public Model {
 public:
  // `sum_over_ranks`: see BatchNorms.
  OnednnModel(ParameterBlock& parameters, ParameterBlock& gradients, BuildGraph build,
              SumOverRanks sum_over_ranks = {});
  ~OnednnModel() override;

  BatchResult forward_backward(std::span<const float> inputs, std::span<const std::uint8_t> labels,
                               const std::function<void()>& begin,
                               const GradientReady& ready) override;
  BatchResult forward(std::span<const float> inputs, std::span<const std::uint8_t> labels) override;
  std::vector<std::span<float>> statistics() override;
  void forget_sizes() override;

 private:
  using Graphs = std::map<std::size_t, std::unique_ptr<Graph>>;

  Graph& graph_for(std::size_t batch, Purpose purpose);
  void make_norms();
  void join_norms();

  ParameterBlock& parameters_;
  ParameterBlock& gradients_;
  BuildGraph build_;
  BatchNorms norms_;
  Graphs training_;
  Graphs evaluation_;
};

// The maker of such models.
MakeModel model_by_onednn(BuildGraph build);

}  // namespace lenet
