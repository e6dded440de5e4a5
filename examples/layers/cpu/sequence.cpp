#include "sequence.hpp"

namespace lenet {

using dnnl::memory;

void Sequence::add(const dnnl::primitive& primitive, std::unordered_map<int, memory> arguments) {
  operations_.push_back({primitive, std::move(arguments), {}, {}});
}

void Sequence::add(std::function<void()> work) {
  operations_.push_back({{}, {}, std::move(work), {}});
}

void Sequence::complete(std::initializer_list<std::size_t> parameters) {
  operations_.back().completes = parameters;
}

memory Sequence::reordered(const memory& from, const memory::desc& wanted) {
  if (from.get_desc() == wanted) return from;
  memory to = buffer(wanted);
  copy(from, to);
  return to;
}

void Sequence::copy(const memory& from, const memory& to) {
  add(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void Sequence::run(dnnl::stream& stream, const GradientReady& ready) const {
  for (const Operation& operation : operations_) {
    if (operation.work) {
      stream.wait();
      operation.work();
    } else {
      operation.primitive.execute(stream, operation.arguments);
    }
    if (operation.completes.empty()) continue;
    stream.wait();
    for (const std::size_t parameter : operation.completes) ready(parameter);
  }
  stream.wait();
}

}  // namespace lenet
