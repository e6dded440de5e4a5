// A build without CUDA: there is no device, and so nothing else is ever asked for.
#include <rondo/errors.hpp>

#include "cuda/api/api.hpp"

namespace rondo::detail::gpu::api {
namespace {

constexpr const char* kAbsent =
    "this librondo was built without CUDA; build it where nvcc 12.5 or newer is found (Meson's "
    "option "
    "cuda)";

[[noreturn]] void refuse() { throw CudaError(kAbsent); }

}  // namespace

int device_count() { return 0; }
std::string why_no_device() { return kAbsent; }
DeviceFacts facts_of(int /*device*/) { refuse(); }
int current_device() { refuse(); }
void use_device(int /*device*/) { refuse(); }
bool in_use(int /*device*/) { refuse(); }
bool can_reach(int /*device*/, int /*peer*/) { refuse(); }
bool atomics_between(int /*device*/, int /*peer*/) { refuse(); }
void enable_peer(int /*peer*/) { refuse(); }
void* allocate(std::size_t /*bytes*/) { refuse(); }
void release(void* /*memory*/) { refuse(); }
void copy(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/) { refuse(); }
void copy_async(void* /*to*/, const void* /*from*/, std::size_t /*bytes*/, Stream /*stream*/) {
  refuse();
}
void clear_async(void* /*memory*/, std::size_t /*bytes*/, Stream /*stream*/) { refuse(); }
Pool make_pool(int /*device*/) { refuse(); }
void destroy(Pool /*pool*/) { refuse(); }
void* allocate_async(Pool /*pool*/, std::size_t /*bytes*/, Stream /*stream*/) { refuse(); }
void release_async(void* /*memory*/, Stream /*stream*/) { refuse(); }
void* register_host(void* /*memory*/, std::size_t /*bytes*/) { refuse(); }
void unregister_host(void* /*memory*/) { refuse(); }
IpcHandle export_memory(void* /*memory*/) { refuse(); }
void* open_memory(const IpcHandle& /*handle*/) { refuse(); }
void close_memory(void* /*base*/) { refuse(); }
Stream make_stream(bool /*urgent*/) { refuse(); }
void destroy(Stream /*stream*/) { refuse(); }
void wait_for(Stream /*stream*/) { refuse(); }
bool is_capturing(Stream /*stream*/) { refuse(); }
Event make_event(bool /*timed*/) { refuse(); }
void destroy(Event /*event*/) { refuse(); }
void record(Event /*event*/, Stream /*stream*/) { refuse(); }
void wait_for(Event /*event*/, Stream /*stream*/) { refuse(); }
void wait_for(Event /*event*/) { refuse(); }
double microseconds_between(Event /*from*/, Event /*to*/) { refuse(); }
void begin_capture(Stream /*stream*/) { refuse(); }
Graph end_capture(Stream /*stream*/) { refuse(); }
void launch(Graph /*graph*/, Stream /*stream*/) { refuse(); }
void destroy(Graph /*graph*/) { refuse(); }
void load(const void* /*kernel*/) { refuse(); }
int blocks_at_once(const void* /*kernel*/, int /*threads*/, std::size_t /*shared_bytes*/) {
  refuse();
}
void launch(const void* /*kernel*/, std::size_t /*blocks*/, int /*threads*/,
            std::size_t /*shared_bytes*/, void** /*arguments*/, Stream /*stream*/) {
  refuse();
}

}  // namespace rondo::detail::gpu::api
