// A task that needs no files, and a pattern for one's own: points of the plane that lie on three
// spirals, and a network of dense layers, 2→64→64→3 with ReLUs between them, that learns which
// spiral a point lies on.
#pragma once

#include <cstdint>
#include <memory>

#include "examples/layers/parameters.hpp"
#include "examples/layers/samples.hpp"

namespace lenet::systems {

namespace spirals {

inline constexpr std::int64_t kInputs = 2;
inline constexpr std::int64_t kWidth = 64;
inline constexpr std::int64_t kOutputs = 3;

// Weights from N(0, 2 / inputs of the layer), after K. He et al., "Delving Deep into Rectifiers"
// (2015); biases 0.
const std::shared_ptr<const ParameterShapes>& shapes();

// 3072 points to train on and 768 to test on, the same on every rank.
Dataset samples();

}  // namespace spirals

// `Graph` is the one for CPUs or the one for GPUs.
template <class Graph>
void build_spirals(Graph& graph) {
  using Tag = typename Graph::Tag;
  using spirals::kOutputs, spirals::kWidth;
  const auto bias = [&](std::size_t parameter, std::int64_t outputs) {
    return graph.weights(parameter, {outputs}, Tag::x);
  };
  auto x = graph.inputs(spirals::kInputs, 1);
  x = graph.dense(x, graph.weights(0, {kWidth, spirals::kInputs, 1, 1}, Tag::oihw), bias(1, kWidth),
                  true);
  x = graph.dense(x, graph.weights(2, {kWidth, kWidth}, Tag::io), bias(3, kWidth), true);
  graph.end_in(
      graph.dense(x, graph.weights(4, {kOutputs, kWidth}, Tag::io), bias(5, kOutputs), false));
}

}  // namespace lenet::systems
