// LeNet as the articles have it: convolution 20×3×3, ReLU, average pooling 2×2, convolution 50×5×5, ReLU, average pooling
// 2×2, dense 800→128, ReLU, dense 128→10, softmax cross-entropy.
#pragma once

#include "graph.hpp"

namespace lenet {

inline constexpr dnnl::memory::dim kLastChannels = 50;  // of the convolutions,
inline constexpr dnnl::memory::dim kLastSide = 4;       // 4×4 pixels each
inline constexpr dnnl::memory::dim kHidden = 128;       // outputs of the first dense layer

// Parameter `parameter`, a bias.
Graph::Weights bias(Graph& graph, std::size_t parameter, dnnl::memory::dim outputs);
// W3 and W4, or parts of them.
Graph::Weights first_dense(Graph& graph, dnnl::memory::dim channels, dnnl::memory::dim outputs);
Graph::Weights second_dense(Graph& graph, dnnl::memory::dim inputs, dnnl::memory::dim outputs);

// From images to the second pooling.
Graph::Tensor convolutions(Graph& graph);
// From there to the logits.
Graph::Tensor dense_layers(Graph& graph, Graph::Tensor input);

}  // namespace lenet
