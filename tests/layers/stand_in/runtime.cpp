#include <cstring>
#include <exception>
#include <map>
#include <mutex>

#include "cuda/api/api.hpp"
#include "cuda_runtime_api.h"

namespace {

namespace api = rondo::detail::gpu::api;

template <class Call>
cudaError_t code_of(const Call& call) {
  try {
    call();
    return cudaSuccess;
  } catch (const std::exception&) {
    return cudaErrorUnknown;
  }
}

// Of the device in use; lives as long as the process.
api::Pool default_pool() {
  static std::mutex mutex;
  static auto& pools = *new std::map<int, api::Pool>();  // used until the process ends
  const std::lock_guard lock(mutex);
  const int device = api::current_device();
  const auto found = pools.find(device);
  return found != pools.end() ? found->second
                              : pools.emplace(device, api::make_pool(device)).first->second;
}

}  // namespace

const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaSuccess ? "no error" : "the stand-in refused";
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaGetDevice(int* device) {
  return code_of([&] { *device = api::current_device(); });
}
cudaError_t cudaSetDevice(int device) {
  return code_of([&] { api::use_device(device); });
}
// What is not on a stream is done at once. Streams are waited for where the trainer does so.
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return code_of([&] { *memory = api::allocate(bytes); });
}
cudaError_t cudaFree(void* memory) {
  return code_of([&] {
    if (memory != nullptr) api::release(memory);
  });
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream) {
  return code_of([&] { *memory = api::allocate_async(default_pool(), bytes, stream); });
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  return code_of([&] { api::release_async(memory, stream); });
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int /*zero*/, std::size_t bytes, cudaStream_t stream) {
  return code_of([&] { api::clear_async(memory, bytes, stream); });
}
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/) {
  return code_of([&] { api::copy(to, from, bytes); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  return code_of([&] { api::copy_async(to, from, bytes, stream); });
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  return code_of([&] { *stream = api::make_stream(false); });
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return code_of([&] { api::destroy(stream); });
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return code_of([&] {
    if (stream != nullptr) api::wait_for(stream);
  });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  return code_of([&] { *event = api::make_event(false); });
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return code_of([&] { api::destroy(event); });
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return code_of([&] { api::record(event, stream); });
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return code_of([&] { api::wait_for(event); });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode /*mode*/) {
  return code_of([&] { api::begin_capture(stream); });
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return code_of([&] { *graph = api::end_capture(stream); });
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned /*flags*/) {
  *executable = graph;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t /*graph*/) {
  return cudaSuccess;
}  // it is the executable one
cudaError_t cudaGraphUpload(cudaGraphExec_t /*executable*/, cudaStream_t /*stream*/) {
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return code_of([&] { api::launch(executable, stream); });
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return code_of([&] { api::destroy(executable); });
}
