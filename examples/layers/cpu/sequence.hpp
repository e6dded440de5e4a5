// Operations in the order in which they run.
#pragma once

#include <functional>
#include <initializer_list>
#include <unordered_map>
#include <utility>
#include <vector>

#include "examples/layers/exchange.hpp"
#include "onednn.hpp"

namespace lenet {

class Sequence {
 public:
  explicit Sequence(dnnl::engine engine) : engine_(std::move(engine)) {}

  void add(const dnnl::primitive& primitive, std::unordered_map<int, dnnl::memory> arguments);
  void add(std::function<void()> work);
  // The gradients of `parameters` are complete after the operation that was added last.
  void complete(std::initializer_list<std::size_t> parameters);
  [[nodiscard]] dnnl::memory buffer(const dnnl::memory::desc& desc) const {
    return {desc, engine_};
  }
  // `from` in the layout `wanted`: itself, or a copy that a reordering step keeps up to date.
  dnnl::memory reordered(const dnnl::memory& from, const dnnl::memory::desc& wanted);
  void copy(const dnnl::memory& from, const dnnl::memory& to);
  void run(dnnl::stream& stream, const GradientReady& ready) const;

 private:
  struct Operation {
    dnnl::primitive primitive;
    std::unordered_map<int, dnnl::memory> arguments;
    std::function<void()> work;          // in place of a primitive
    std::vector<std::size_t> completes;  // parameters whose gradients are complete after it
  };

  dnnl::engine engine_;
  std::vector<Operation> operations_;
};

}  // namespace lenet
