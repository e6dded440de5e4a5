// One of two stages that a model's layers are split into, each on a rank of its own: see
// parallel/lenet_parts.hpp.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "examples/layers/cpu/graph.hpp"
#include "examples/layers/model.hpp"
#include "parallel/parts.hpp"

namespace lenet::systems {

class PipelineStage final : public Model {
 public:
  // `build` names the layers of this rank's stage: the first ends in leave(), the second begins
  // with activations().
  PipelineStage(ParameterBlock& parameters, ParameterBlock& gradients,
                std::function<void(Graph&)> build, std::shared_ptr<Parts> parts,
                std::size_t micro_batches);

  // Each throws what the parts' messages throw. The results are the same on both ranks.
  BatchResult forward_backward(std::span<const float> inputs, std::span<const std::uint8_t> labels,
                               const std::function<void()>& begin,
                               const GradientReady& ready) override;
  BatchResult forward(std::span<const float> inputs, std::span<const std::uint8_t> labels) override;
  void forget_sizes() override;

 private:
  struct MicroBatch {
    std::span<const float> inputs;
    std::span<const std::uint8_t> labels;
  };

  [[nodiscard]] std::vector<MicroBatch> cut(std::span<const float> inputs,
                                            std::span<const std::uint8_t> labels) const;
  Graph& graph_for(std::size_t batch, Purpose purpose, std::size_t number);
  void run_first(const std::vector<MicroBatch>& batches, const std::function<void()>& begin,
                 const GradientReady& ready);
  BatchResult run_second(const std::vector<MicroBatch>& batches, const std::function<void()>& begin,
                         const GradientReady& ready);
  // Adds a micro-batch's gradients to the others' as they become complete, and tells of those of
  // the last.
  GradientReady adding(bool last, const GradientReady& ready);
  BatchResult agreed(BatchResult result);

  ParameterBlock& parameters_;
  ParameterBlock& gradients_;
  ParameterBlock added_;  // gradients of one micro-batch
  std::function<void(Graph&)> build_;
  std::shared_ptr<Parts> parts_;
  std::size_t micro_batches_;
  BatchNorms norms_;  // none
  // Of the first stage, two for each size, since it computes a micro-batch forward before the one
  // before backward.
  std::array<std::map<std::size_t, std::unique_ptr<Graph>>, 2> training_;
  std::map<std::size_t, std::unique_ptr<Graph>> evaluation_;
  std::vector<float> received_;
};

}  // namespace lenet::systems
