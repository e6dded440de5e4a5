#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <chrono>
#include <string>

#include "allocator.hpp"
#include "backend.hpp"

namespace rondo::torch_backend {
namespace {

BasePtr create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               const std::chrono::milliseconds& timeout, const BasePtr& messages,
               const std::string& name) {
  return c10::make_intrusive<RondoBackend>(store, rank, size, timeout, messages, name);
}

}  // namespace
}  // namespace rondo::torch_backend

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("create_backend", &rondo::torch_backend::create,
             pybind11::call_guard<pybind11::gil_scoped_release>());
  module.def("use_reachable_allocator", &rondo::torch_backend::use_reachable_allocator);
}
