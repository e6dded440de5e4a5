// LeNet computed by several ranks, each with a part of the parameters.
//
// `columns` and `rows` split the matrices of the two dense layers. All parts compute the
// convolutions, whose parameters all of them have. With x the inputs (one sample per row) and W a
// layer's weights (input by output):
//
//   columns   part p has columns W_p: it computes x·W_p, some columns of the output, and the
//             parts gather the output. Backward, each part has a term of the slopes of x, and
//             they sum them.
//   rows      part p has rows W_p and takes the columns x_p of x: x_p·W_p is a term of the
//             output, and the parts sum them. Backward, each part has some columns of the slopes
//             of x, and they gather them. Part 0 has the bias.
//
// `layers` makes two stages: part 0 has the convolutions, part 1 the dense layers. The minibatch
// goes through them in micro-batches, so that both stages have work. With four, F and B the passes
// forward and backward:
//
//   part 0   F0 F1    B0 F2    B1 F3    B2   B3
//   part 1      F0 B0    F1 B1    F2 B2   F3 B3
//
// Activations go from part 0 to part 1, their slopes back. Part 0 keeps the activations of two
// micro-batches at a time.
//
// Sources: M. Shoeybi et al., "Megatron-LM" (2019) for rows and columns; Y. Huang et al., "GPipe"
// (2019) and D. Narayanan et al., "PipeDream" (2019) for micro-batches and their order.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "examples/layers/task.hpp"
#include "parts.hpp"

namespace lenet::systems {

enum class Split : std::uint8_t { columns, rows, layers };

// By its name. Throws std::runtime_error.
Split split_named(const std::string& name);

// Of part `part` of `parts`: the same parameters as lenet_shapes(), of which some have fewer
// elements, or none.
std::shared_ptr<const ParameterShapes> lenet_part_shapes(Split split, int part, int parts);

// LeNet, of which this rank computes its part. `micro_batches`: for Split::layers. Throws
// std::runtime_error where the model cannot be split into so many parts.
Task lenet_part(Split split, const std::shared_ptr<Parts>& parts, std::size_t micro_batches);

// Collective: the parameters of the whole model on part 0; of no use elsewhere.
ParameterBlock joined(ParameterBlock& mine, Parts& parts, Split split);

}  // namespace lenet::systems
