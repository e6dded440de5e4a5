#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <chrono>
#include <string>

#include "allocator.hpp"
#include "backend.hpp"

namespace rondo::torch_backend {
namespace {

// `make_messages`: a function of Python, which is kept as long as the process lives.
BasePtr create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               const std::chrono::milliseconds& timeout, const pybind11::function& make_messages,
               const std::string& name) {
  auto* const kept = new pybind11::function(make_messages);
  const RondoBackend::MakeMessages make = [kept](const c10::intrusive_ptr<c10d::Store>& of, int own,
                                                 int ranks, std::chrono::milliseconds patience) {
    const pybind11::gil_scoped_acquire gil;
    return (*kept)(of, own, ranks, patience).cast<BasePtr>();
  };
  const pybind11::gil_scoped_release no_gil;
  return c10::make_intrusive<RondoBackend>(store, rank, size, timeout, make, name);
}

}  // namespace
}  // namespace rondo::torch_backend

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("create_backend", &rondo::torch_backend::create);
  module.def("use_reachable_allocator", &rondo::torch_backend::use_reachable_allocator);
}
