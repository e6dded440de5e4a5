#include "onednn_model.hpp"

#include <algorithm>
#include <utility>

namespace lenet {

OnednnModel::OnednnModel(ParameterBlock& parameters, ParameterBlock& gradients, BuildGraph build,
                         SumOverRanks sum_over_ranks)
    : parameters_(parameters),
      gradients_(gradients),
      build_(std::move(build)),
      norms_{{}, std::move(sum_over_ranks)} {}
OnednnModel::~OnednnModel() = default;

Graph& OnednnModel::graph_for(std::size_t batch, Purpose purpose) {
  std::unique_ptr<Graph>& graph = (purpose == Purpose::training ? training_ : evaluation_)[batch];
  if (!graph) {
    graph = std::make_unique<Graph>(batch, purpose, parameters_, gradients_, norms_);
    build_(*graph);
  }
  return *graph;
}

void OnednnModel::forget_sizes() {
  training_.clear();
  evaluation_.clear();
}

void OnednnModel::make_norms() {
  if (norms_.layers.empty()) graph_for(1, Purpose::training);  // makes the layers
}

std::vector<std::span<float>> OnednnModel::statistics() {
  make_norms();
  std::vector<std::span<float>> all;
  for (BatchNorm& norm : norms_.layers) {
    all.emplace_back(norm.mean);
    all.emplace_back(norm.variance);
  }
  return all;
}

// Of a rank without samples: the sums that the others make in this step, forward and backward.
void OnednnModel::join_norms() {
  if (!norms_.sum_over_ranks) return;
  make_norms();
  for (const bool forward : {true, false}) {
    for (std::size_t i = 0; i < norms_.layers.size(); ++i) {
      BatchNorm& norm = norms_.layers[forward ? i : norms_.layers.size() - 1 - i];
      BatchNormPass pass(0, norm.mean.size());
      const std::vector<float> ones(norm.mean.size(), 1.0F);
      std::vector<float> unused(norm.mean.size());
      if (forward) {
        pass.train(norm, norms_.sum_over_ranks, nullptr, ones, ones, nullptr);
      } else {
        pass.backward(norms_.sum_over_ranks, nullptr, ones, nullptr, nullptr, unused, unused);
      }
    }
  }
}

BatchResult OnednnModel::forward_backward(std::span<const float> inputs,
                                          std::span<const std::uint8_t> labels,
                                          const std::function<void()>& begin,
                                          const GradientReady& ready) {
  if (labels.empty()) {
    join_norms();
    begin();
    std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0F);
    for (std::size_t i = gradients_.size(); i-- > 0;) ready(i);
    return {};
  }
  Graph& graph = graph_for(labels.size(), Purpose::training);
  const BatchResult result = graph.forward(inputs, labels);
  begin();
  graph.backward(labels, ready);
  return result;
}

BatchResult OnednnModel::forward(std::span<const float> inputs,
                                 std::span<const std::uint8_t> labels) {
  if (labels.empty()) return {};
  return graph_for(labels.size(), Purpose::evaluation).forward(inputs, labels);
}

MakeModel model_by_onednn(BuildGraph build) {
  return [build = std::move(build)](ParameterBlock& parameters, ParameterBlock& gradients,
                                    const SumOverRanks& sum) {
    return std::make_unique<OnednnModel>(parameters, gradients, build, sum);
  };
}

}  // namespace lenet
