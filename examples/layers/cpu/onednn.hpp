// Layers as oneDNN's primitives.
#pragma once

#include "examples/layers/layers.hpp"
#include "onednn_version.hpp"

namespace lenet::onednn {

inline constexpr auto kDirect = dnnl::algorithm::convolution_direct;

inline dnnl::memory::dims strides(const Window& window) { return {window.stride, window.stride}; }
inline dnnl::memory::dims paddings(const Window& window) {
  return {window.padding, window.padding};
}

inline auto convolution_forward(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                const Desc& bias, const Desc& dst, const Window& window,
                                const dnnl::primitive_attr& attributes) {
  return make_forward<dnnl::convolution_forward>(engine, attributes, kTraining, kDirect, src,
                                                 weights, bias, dst, strides(window),
                                                 paddings(window), paddings(window));
}

inline auto convolution_backward_weights(const dnnl::engine& engine, const Desc& src,
                                         const Desc& weights, const Desc& bias, const Desc& dst,
                                         const Window& window,
                                         const dnnl::convolution_forward::primitive_desc& forward) {
  return make_backward<dnnl::convolution_backward_weights>(engine, forward, kDirect, src, weights,
                                                           bias, dst, strides(window),
                                                           paddings(window), paddings(window));
}

inline auto convolution_backward_data(const dnnl::engine& engine, const Desc& src,
                                      const Desc& weights, const Desc& dst, const Window& window,
                                      const dnnl::convolution_forward::primitive_desc& forward) {
  return make_backward<dnnl::convolution_backward_data>(engine, forward, kDirect, src, weights, dst,
                                                        strides(window), paddings(window),
                                                        paddings(window));
}

inline auto dense_forward(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                          const Desc& bias, const Desc& dst,
                          const dnnl::primitive_attr& attributes) {
  return make_forward<dnnl::inner_product_forward>(engine, attributes, kTraining, src, weights,
                                                   bias, dst);
}

inline auto dense_backward_weights(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                   const Desc& bias, const Desc& dst,
                                   const dnnl::inner_product_forward::primitive_desc& forward) {
  return make_backward<dnnl::inner_product_backward_weights>(engine, forward, src, weights, bias,
                                                             dst);
}

inline auto dense_backward_data(const dnnl::engine& engine, const Desc& src, const Desc& weights,
                                const Desc& dst,
                                const dnnl::inner_product_forward::primitive_desc& forward) {
  return make_backward<dnnl::inner_product_backward_data>(engine, forward, src, weights, dst);
}

}  // namespace lenet::onednn
