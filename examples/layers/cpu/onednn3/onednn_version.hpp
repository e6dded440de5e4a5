// The parts of oneDNN's interface that differ between versions 2 and 3; this file is for version 3.
// Meson picks the folder; the files in both folders declare the same functions.
#pragma once

#include <dnnl.hpp>

namespace lenet::onednn {

using Desc = dnnl::memory::desc;

inline constexpr auto kTraining = dnnl::prop_kind::forward_training;
// There is no padding, so both kinds of average pooling are the same.
inline constexpr auto kAverage = dnnl::algorithm::pooling_avg_exclude_padding;
inline constexpr auto kRelu = dnnl::algorithm::eltwise_relu_use_dst_for_bwd;

inline dnnl::memory::dims dims_of(const Desc& desc) { return desc.get_dims(); }

inline dnnl::primitive_attr with_relu() {
  dnnl::post_ops post;
  post.append_eltwise(dnnl::algorithm::eltwise_relu, 0.0F, 0.0F);
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(post);
  return attributes;
}

// A forward primitive of kind P, and a backward one, which wants its forward one as a hint.
template <class P, class... Args>
auto make_forward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                  const Args&... args) {
  return typename P::primitive_desc(engine, args..., attributes);
}
template <class P, class Forward, class... Args>
auto make_backward(const dnnl::engine& engine, const Forward& forward, const Args&... args) {
  return typename P::primitive_desc(engine, args..., forward);
}

// Of squares that do not overlap.
inline auto pooling_forward(const dnnl::engine& engine, const Desc& src, const Desc& dst,
                            dnnl::memory::dim side) {
  return dnnl::pooling_forward::primitive_desc(engine, kTraining, kAverage, src, dst, {side, side},
                                               {side, side}, {0, 0}, {0, 0}, {0, 0});
}

inline auto pooling_backward(const dnnl::engine& engine, const Desc& src, const Desc& dst,
                             const dnnl::pooling_forward::primitive_desc& forward,
                             dnnl::memory::dim side) {
  return dnnl::pooling_backward::primitive_desc(engine, kAverage, src, dst, {side, side},
                                                {side, side}, {0, 0}, {0, 0}, {0, 0}, forward);
}

inline auto relu_backward(const dnnl::engine& engine, const Desc& desc) {
  const dnnl::eltwise_forward::primitive_desc forward(engine, kTraining, kRelu, desc, desc, 0.0F,
                                                      0.0F);
  return dnnl::eltwise_backward::primitive_desc(engine, kRelu, desc, desc, desc, 0.0F, 0.0F,
                                                forward);
}

using LogSoftmax = dnnl::softmax_forward;
inline auto log_softmax_forward(const dnnl::engine& engine, const Desc& desc) {
  return LogSoftmax::primitive_desc(engine, kTraining, dnnl::algorithm::softmax_log, desc, desc, 1);
}

}  // namespace lenet::onednn
