#include <memory>
#include <utility>

#include "examples/layers/cpu/onednn_model.hpp"
#include "examples/lenet/lenet_layers.hpp"
#include "examples/lenet/lenet_shapes.hpp"
#include "examples/lenet/task.hpp"
#include "parallel/lenet_parts.hpp"
#include "pipeline_stage.hpp"

namespace lenet::systems {
namespace {

using dnnl::memory;
using Pass = Graph::Pass;
using Tensor = Graph::Tensor;

// The layers of dense layers whose matrices are split: each passes to or from all parts.
class PartLayers {
 public:
  PartLayers(Graph& graph, Parts& parts) : graph_(graph), parts_(parts) {}

  // What all parts have goes into the parts' columns of a matrix. Backward, each has a term of the
  // slopes.
  Tensor into_columns(Tensor input, memory::dim channels) {
    return graph_.custom(input, channels, copy(), [parts = &parts_](auto from, auto to) {
      copy()(from, to);
      parts->sum(to);
    });
  }
  // The parts' columns of the output, together.
  Tensor gathered(Tensor mine, memory::dim channels) {
    return graph_.custom(mine, channels, gather(channels), take(channels));
  }
  // This part's columns of the input.
  Tensor taken(Tensor whole, memory::dim channels) {
    return graph_.custom(whole, own(channels), take(channels), gather(channels));
  }
  // The sum of the parts' terms of the output.
  Tensor summed(Tensor term, memory::dim channels) {
    return graph_.custom(
        term, channels,
        [parts = &parts_](auto from, auto to) {
          copy()(from, to);
          parts->sum(to);
        },
        copy());
  }
  // How many of them this part has.
  [[nodiscard]] memory::dim own(memory::dim channels) const {
    return static_cast<memory::dim>(
        part_of(static_cast<std::size_t>(channels), parts_.part(), parts_.parts()).count);
  }

 private:
  static Pass copy() {
    return [](auto from, auto to) { std::copy(from.begin(), from.end(), to.begin()); };
  }
  [[nodiscard]] Pass gather(memory::dim channels) const {
    return [parts = &parts_, columns = static_cast<std::size_t>(channels)](auto mine, auto whole) {
      parts->gather_columns(mine, whole, columns);
    };
  }
  [[nodiscard]] Pass take(memory::dim channels) const {
    return [parts = &parts_, columns = static_cast<std::size_t>(channels)](auto whole, auto mine) {
      parts->take_columns(whole, mine, columns);
    };
  }

  Graph& graph_;
  Parts& parts_;
};

void build_columns(Graph& graph, Parts& parts) {
  PartLayers all(graph, parts);
  const memory::dim hidden = all.own(kHidden);
  const memory::dim classes = all.own(kClasses);
  Tensor x = all.into_columns(convolutions(graph), kLastChannels);
  x = graph.dense(x, first_dense(graph, kLastChannels, hidden), bias(graph, kB3, hidden), true);
  x = all.into_columns(all.gathered(x, kHidden), kHidden);
  x = graph.dense(x, second_dense(graph, kHidden, classes), bias(graph, kB4, classes), false);
  graph.end_in(all.gathered(x, kClasses));
}

void build_rows(Graph& graph, Parts& parts) {
  PartLayers all(graph, parts);
  Tensor x = all.taken(convolutions(graph), kLastChannels);
  x = graph.dense(x, first_dense(graph, all.own(kLastChannels), kHidden), bias(graph, kB3, kHidden),
                  false);
  x = all.taken(graph.relu(all.summed(x, kHidden)), kHidden);
  x = graph.dense(x, second_dense(graph, all.own(kHidden), kClasses), bias(graph, kB4, kClasses),
                  false);
  graph.end_in(all.summed(x, kClasses));
}

void build_stage(Graph& graph, int stage) {
  if (stage == 0) {
    graph.leave(convolutions(graph));
  } else {
    graph.end_in(dense_layers(graph, graph.activations(kLastChannels, kLastSide)));
  }
}

std::unique_ptr<Model> make_part(Split split, const std::shared_ptr<Parts>& parts,
                                 std::size_t micro_batches, ParameterBlock& parameters,
                                 ParameterBlock& gradients) {
  switch (split) {
    case Split::columns:
      return std::make_unique<OnednnModel>(parameters, gradients,
                                           [parts](Graph& graph) { build_columns(graph, *parts); });
    case Split::rows:
      return std::make_unique<OnednnModel>(parameters, gradients,
                                           [parts](Graph& graph) { build_rows(graph, *parts); });
    case Split::layers:
      break;
  }
  return std::make_unique<PipelineStage>(
      parameters, gradients, [stage = parts->part()](Graph& graph) { build_stage(graph, stage); },
      parts, micro_batches);
}

}  // namespace

Task lenet_part(Split split, const std::shared_ptr<Parts>& parts, std::size_t micro_batches) {
  Task part = lenet_task();
  part.shapes = lenet_part_shapes(split, parts->part(), parts->parts());
  part.make_model = [=](ParameterBlock& parameters, ParameterBlock& gradients,
                        const SumOverRanks& /*sum*/) {
    return make_part(split, parts, micro_batches, parameters, gradients);
  };
  part.build_on_gpu = {};
  return part;
}

}  // namespace lenet::systems
