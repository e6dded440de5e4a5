// The thin layer on the CUDA runtime.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <limits>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/put.hpp"
#include "cuda/api/api.hpp"

namespace rondo::detail::gpu::api {
namespace {

std::string cure_for(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation:
      return "; the device has too little memory left: choose fewer channels, slots or slot_bytes";
    case cudaErrorInsufficientDriver:
    case cudaErrorNoDevice:
      return "; is a driver for this version of CUDA installed, and a GPU visible "
             "(CUDA_VISIBLE_DEVICES, docker run --gpus all)?";
    case cudaErrorNoKernelImageForDevice:
      return "; librondo was not built for this GPU: it runs on compute capability 8.0 and newer";
    case cudaErrorIllegalAddress:
      return "; a buffer is not memory that this device can reach, or is shorter than the call "
             "says";
    default:
      return {};
  }
}

void require(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return;
  cudaGetLastError();  // clears the error: a later call must not report it again
  int device = -1;
  cudaGetDevice(&device);
  throw CudaError(fmt::format("{} on device {}: {} ({}){}", call, device, cudaGetErrorString(code),
                              cudaGetErrorName(code), cure_for(code)));
}

// The type is the same in CUDA's runtime and driver.
cudaStream_t of(Stream stream) { return stream; }

// A function of the driver, which librondo is not linked with.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  require(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
          "cudaGetDriverEntryPoint");
  if (found == nullptr) throw CudaError(fmt::format("the driver has no {}", name));
  return reinterpret_cast<Function>(found);
}

// The base of the allocation that `memory` lies in: what an IPC handle names.
std::uintptr_t base_of(void* memory) {
  using Function = CUresult (*)(CUdeviceptr*, std::size_t*, CUdeviceptr);
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  const CUresult code = driver_function<Function>("cuMemGetAddressRange")(
      &base, &bytes, reinterpret_cast<CUdeviceptr>(memory));
  if (code != CUDA_SUCCESS) {
    throw CudaError(fmt::format("cuMemGetAddressRange failed with {}", static_cast<int>(code)));
  }
  return static_cast<std::uintptr_t>(base);
}

}  // namespace

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

std::string why_no_device() {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess) return count > 0 ? "there is one" : "CUDA sees no device";
  cudaGetLastError();
  return fmt::format("{} ({}){}", cudaGetErrorString(code), cudaGetErrorName(code), cure_for(code));
}

DeviceFacts facts_of(int device) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  DeviceFacts facts;
  put(facts.name, properties.name);
  std::memcpy(facts.uuid.data(), properties.uuid.bytes, facts.uuid.size());
  require(
      cudaDeviceGetPCIBusId(facts.pci_bus.data(), static_cast<int>(facts.pci_bus.size()), device),
      "cudaDeviceGetPCIBusId");
  facts.multiprocessors = properties.multiProcessorCount;
  return facts;
}

int current_device() {
  int device = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  return device;
}

void use_device(int device) { require(cudaSetDevice(device), "cudaSetDevice"); }

bool in_use(int device) {
  using Function = CUresult (*)(CUdevice, unsigned*, int*);
  unsigned flags = 0;
  int active = 0;
  const CUresult code =
      driver_function<Function>("cuDevicePrimaryCtxGetState")(device, &flags, &active);
  return code == CUDA_SUCCESS && active != 0;
}

bool can_reach(int device, int peer) {
  int can = 0;
  require(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer");
  return can != 0;
}

bool atomics_between(int device, int peer) {
  int supported = 0;
  require(cudaDeviceGetP2PAttribute(&supported, cudaDevP2PAttrNativeAtomicSupported, device, peer),
          "cudaDeviceGetP2PAttribute");
  return supported != 0;
}

void enable_peer(int peer) {
  const cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
  if (code == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  require(code, "cudaDeviceEnablePeerAccess");
}

void* allocate(std::size_t bytes) {
  void* memory = nullptr;
  require(cudaMalloc(&memory, bytes), "cudaMalloc");
  const cudaError_t code = cudaMemset(memory, 0, bytes);
  // The memset may still be under way on the default stream.
  const cudaError_t done = code == cudaSuccess ? cudaStreamSynchronize(nullptr) : code;
  if (done != cudaSuccess) cudaFree(memory);
  require(done, "cudaMemset");
  return memory;
}

void release(void* memory) { require(cudaFree(memory), "cudaFree"); }

void copy(void* to, const void* from, std::size_t bytes) {
  require(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy");
  // A copy from pageable memory may return before the device has it.
  require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

void copy_async(void* to, const void* from, std::size_t bytes, Stream stream) {
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, of(stream)), "cudaMemcpyAsync");
}

void clear_async(void* memory, std::size_t bytes, Stream stream) {
  require(cudaMemsetAsync(memory, 0, bytes, of(stream)), "cudaMemsetAsync");
}

Pool make_pool(int device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, device};
  cudaMemPool_t pool = nullptr;
  require(cudaMemPoolCreate(&pool, &properties), "cudaMemPoolCreate");
  int off = 0;
  // Memory stays in the pool: giving it back at each synchronisation would unmap it while other
  // ranks wait.
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  cudaError_t code = cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &off);
  if (code == cudaSuccess) {
    code = cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all);
  }
  if (code != cudaSuccess) cudaMemPoolDestroy(pool);
  require(code, "cudaMemPoolSetAttribute");
  return pool;
}

void destroy(Pool pool) { require(cudaMemPoolDestroy(pool), "cudaMemPoolDestroy"); }

void* allocate_async(Pool pool, std::size_t bytes, Stream stream) {
  void* memory = nullptr;
  require(cudaMallocFromPoolAsync(&memory, bytes, pool, of(stream)), "cudaMallocFromPoolAsync");
  return memory;
}

void release_async(void* memory, Stream stream) {
  require(cudaFreeAsync(memory, of(stream)), "cudaFreeAsync");
}

void* register_host(void* memory, std::size_t bytes) {
  require(cudaHostRegister(memory, bytes, cudaHostRegisterMapped | cudaHostRegisterPortable),
          "cudaHostRegister");
  void* on_device = nullptr;
  const cudaError_t code = cudaHostGetDevicePointer(&on_device, memory, 0);
  if (code != cudaSuccess) cudaHostUnregister(memory);
  require(code, "cudaHostGetDevicePointer");
  return on_device;
}

void unregister_host(void* memory) { require(cudaHostUnregister(memory), "cudaHostUnregister"); }

IpcHandle export_memory(void* memory) {
  static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(IpcHandle::handle));
  IpcHandle result;
  cudaIpcMemHandle_t handle{};
  require(cudaIpcGetMemHandle(&handle, memory), "cudaIpcGetMemHandle");
  std::memcpy(result.handle.data(), &handle, sizeof(handle));
  result.offset = reinterpret_cast<std::uintptr_t>(memory) - base_of(memory);
  return result;
}

void* open_memory(const IpcHandle& handle) {
  cudaIpcMemHandle_t native{};
  std::memcpy(&native, handle.handle.data(), sizeof(native));
  void* base = nullptr;
  require(cudaIpcOpenMemHandle(&base, native, cudaIpcMemLazyEnablePeerAccess),
          "cudaIpcOpenMemHandle");
  return base;
}

void close_memory(void* base) { require(cudaIpcCloseMemHandle(base), "cudaIpcCloseMemHandle"); }

Stream make_stream(bool urgent) {
  int least = 0;
  int greatest = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  cudaStream_t stream = nullptr;
  require(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, urgent ? greatest : least),
          "cudaStreamCreateWithPriority");
  return stream;
}

void destroy(Stream stream) { require(cudaStreamDestroy(of(stream)), "cudaStreamDestroy"); }

void wait_for(Stream stream) {
  require(cudaStreamSynchronize(of(stream)), "cudaStreamSynchronize");
}

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t code = cudaStreamIsCapturing(of(stream), &status);
  if (code == cudaErrorStreamCaptureImplicit) {
    cudaGetLastError();
    throw UsageError(
        "the default stream cannot take a call while another stream is captured; use a stream made "
        "with cudaStreamNonBlocking");
  }
  require(code, "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

Event make_event(bool timed) {
  cudaEvent_t event = nullptr;
  require(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
          "cudaEventCreate");
  return event;
}

void destroy(Event event) { require(cudaEventDestroy(event), "cudaEventDestroy"); }
void record(Event event, Stream stream) {
  require(cudaEventRecord(event, of(stream)), "cudaEventRecord");
}
void wait_for(Event event, Stream stream) {
  require(cudaStreamWaitEvent(of(stream), event, 0), "cudaStreamWaitEvent");
}
// Relaxed, since another thread may be capturing a stream in CUDA's global mode, which forbids such
// waits to threads in their usual mode. No event that is waited for here is part of a capture.
void wait_for(Event event) {
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  require(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  const cudaError_t code = cudaEventSynchronize(event);
  require(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  require(code, "cudaEventSynchronize");
}

double microseconds_between(Event from, Event to) {
  float milliseconds = 0;
  require(cudaEventElapsedTime(&milliseconds, from, to), "cudaEventElapsedTime");
  return static_cast<double>(milliseconds) * 1e3;
}

void begin_capture(Stream stream) {
  require(cudaStreamBeginCapture(of(stream), cudaStreamCaptureModeThreadLocal),
          "cudaStreamBeginCapture");
}

Graph end_capture(Stream stream) {
  cudaGraph_t graph = nullptr;
  require(cudaStreamEndCapture(of(stream), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  // Kernels keep the priorities of the streams that they were captured on.
  const cudaError_t code =
      cudaGraphInstantiate(&executable, graph, cudaGraphInstantiateFlagUseNodePriority);
  cudaGraphDestroy(graph);
  require(code, "cudaGraphInstantiate");
  try {
    require(cudaGraphUpload(executable, of(stream)), "cudaGraphUpload");
    wait_for(stream);
  } catch (const CudaError&) {
    cudaGraphExecDestroy(executable);
    throw;
  }
  return executable;
}

void launch(Graph graph, Stream stream) {
  require(cudaGraphLaunch(graph, of(stream)), "cudaGraphLaunch");
}
void destroy(Graph graph) { require(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy"); }

void load(const void* kernel) {
  cudaFuncAttributes attributes{};
  require(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                               cudaSharedmemCarveoutMaxShared),
          "cudaFuncSetAttribute");
}

int blocks_at_once(const void* kernel, int threads, std::size_t shared_bytes) {
  int blocks = 0;
  require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes),
          "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return blocks;
}

void launch(const void* kernel, std::size_t blocks, int threads, std::size_t shared_bytes,
            void** arguments, Stream stream) {
  require(
      cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)),
                       dim3(static_cast<unsigned>(threads)), arguments, shared_bytes, of(stream)),
      "cudaLaunchKernel");
}

}  // namespace rondo::detail::gpu::api
