#include <dlfcn.h>
#include <pybind11/chrono.h>
#include <torch/extension.h>

#include <chrono>
#include <string>
#include <utility>

#include "allocator.hpp"
#include "backend.hpp"

namespace rondo::torch_backend {
namespace {

// Functions of Python are kept as long as the process lives.
RondoBackend::Make kept(const pybind11::function& make) {
  auto* const kept = new pybind11::function(make);
  return [kept](const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                std::chrono::milliseconds timeout) {
    const pybind11::gil_scoped_acquire gil;
    return (*kept)(store, rank, size, timeout).cast<BasePtr>();
  };
}

BasePtr create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
               const std::chrono::milliseconds& timeout, const pybind11::function& for_messages,
               const pybind11::function& for_devices, const std::string& name) {
  RondoBackend::Others others{kept(for_messages), kept(for_devices)};
  const pybind11::gil_scoped_release no_gil;
  return c10::make_intrusive<RondoBackend>(store, rank, size, timeout, std::move(others), name);
}

// Whether the names of NCCL that this process calls are Rondo's.
bool nccl_is_rondo() { return dlsym(RTLD_DEFAULT, "ncclRondoVersion") != nullptr; }

}  // namespace
}  // namespace rondo::torch_backend

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("create_backend", &rondo::torch_backend::create);
  module.def("nccl_is_rondo", &rondo::torch_backend::nccl_is_rondo);
  module.def("use_reachable_allocator", &rondo::torch_backend::use_reachable_allocator);
}
