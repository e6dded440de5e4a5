// All that Rondo asks of CUDA, in one thin layer without CUDA's headers. Three files implement it,
// and Meson or a test chooses: api_runtime.cpp (the CUDA runtime), api_absent.cpp (a build without
// CUDA), and tests/cuda/stand_in.cpp (host memory and host threads).
//
// Functions throw CudaError with the call, the device and CUDA's own words. A returned false or
// null is no error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

// What CUDA's own headers call cudaStream_t, cudaEvent_t, cudaGraphExec_t and cudaMemPool_t.
struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;
struct CUmemPoolHandle_st;

namespace rondo::detail::gpu::api {

using Stream = CUstream_st*;
using Event = CUevent_st*;
using Graph = CUgraphExec_st*;
using Pool = CUmemPoolHandle_st*;

// Devices.

struct DeviceFacts {
  std::array<char, 64> name{};
  std::array<char, 16> uuid{};     // the same in all processes, whatever the device's number there
  std::array<char, 32> pci_bus{};  // "0000:65:00.0"
  int multiprocessors = 0;
};

// Returns how many devices this process sees; 0 where CUDA is absent, and then why.
int device_count();
std::string why_no_device();
DeviceFacts facts_of(int device);
int current_device();
void use_device(int device);
// Whether this process has already made a context on the device; using one makes it.
bool in_use(int device);
// Whether kernels on `device` may reach memory of `peer`, and whether atomics work on the way (they
// do over NVLink, and not over PCIe).
bool can_reach(int device, int peer);
bool atomics_between(int device, int peer);
// Lets the device in use reach memory of `peer`; once it can, not an error.
void enable_peer(int peer);

// Memory, of the device in use.

void* allocate(std::size_t bytes);  // zeroed
void release(void* memory);
void copy(void* to, const void* from, std::size_t bytes);  // any direction; returns when done
void copy_async(void* to, const void* from, std::size_t bytes, Stream stream);
void clear_async(void* memory, std::size_t bytes, Stream stream);
// A pool that never makes one stream wait for another: else one rank could have to wait for
// another.
Pool make_pool(int device);
void destroy(Pool pool);
void* allocate_async(Pool pool, std::size_t bytes, Stream stream);
void release_async(void* memory, Stream stream);
// The address at which kernels reach host memory of this process.
void* register_host(void* memory, std::size_t bytes);
void unregister_host(void* memory);

// What another process needs to reach memory of this one.
struct IpcHandle {
  std::array<std::byte, 64> handle{};  // names the base of the allocation
  std::uint64_t offset = 0;            // of the memory in it
};
IpcHandle export_memory(void* memory);
void* open_memory(const IpcHandle& handle);  // the base; memory is at `offset` behind it
void close_memory(void* base);

// Streams, events, graphs.

// `urgent`: its kernels start before those of others that wait for room.
Stream make_stream(bool urgent);
void destroy(Stream stream);
void wait_for(Stream stream);
bool is_capturing(Stream stream);
Event make_event(bool timed);
void destroy(Event event);
void record(Event event, Stream stream);
void wait_for(Event event, Stream stream);
void wait_for(Event event);
double microseconds_between(Event from, Event to);  // both have happened
void begin_capture(Stream stream);
Graph end_capture(
    Stream stream);  // and made ready, so that its first launch does not wait for others
void launch(Graph graph, Stream stream);
void destroy(Graph graph);

// Kernels, each named by its function.

// Loads the kernel for the device in use: a kernel that is loaded only when it is first started
// would wait for a kernel that waits for another rank. Also asks CUDA to use as much as it can of a
// multiprocessor's memory as shared memory while the kernel runs, so that a kernel of the program,
// such as a matrix product, finds room beside it.
void load(const void* kernel);
// How many blocks of the kernel a multiprocessor of the device in use runs at once.
int blocks_at_once(const void* kernel, int threads, std::size_t shared_bytes);
// `arguments`: the address of each. CUDA copies them before this returns.
void launch(const void* kernel, std::size_t blocks, int threads, std::size_t shared_bytes,
            void** arguments, Stream stream);

}  // namespace rondo::detail::gpu::api
