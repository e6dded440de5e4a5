#include "tests/cuda/stand_in.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bench/exact_values.hpp"
#include "cuda/api/api.hpp"
#include "cuda/kernels/launch.hpp"
#include "reduce/scale.hpp"
#include "tests/cuda/host_block.hpp"
#include "tests/cuda/stand_in_device.hpp"

namespace {

using rondo::test::HardwareQueue;
using rondo::test::StandInDevice;
using Work = std::function<void()>;

class Worker;

// The operations captured from one stream and from streams that joined its capture by events, in
// the order in which they were enqueued: one of the orders that the graph allows.
struct Capture {
  Worker* origin = nullptr;
  std::vector<Work> works;
  std::map<Worker*, std::size_t> pushed;  // by each stream
  std::map<Worker*, std::size_t> joined;  // how many of these the origin has waited for
};

thread_local int device_in_use = 0;

// A thread that does one thing after the other.
class Worker {
 public:
  Worker() : thread_([this] { serve(); }) {}
  ~Worker() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
      changed_.notify_all();
    }
    thread_.join();
  }

  void push(Work work) {
    const auto enqueueing = device_.enqueueing();
    const std::lock_guard lock(mutex_);
    if (capture_) {
      capture_->works.push_back(std::move(work));
      ++capture_->pushed[this];
      return;
    }
    device_.begin_work();
    queue_.push_back({std::move(work), hardware_ == nullptr ? 0 : hardware_->enter()});
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  }
  [[nodiscard]] std::shared_ptr<Capture> capture() {
    const std::lock_guard lock(mutex_);
    return capture_;
  }
  [[nodiscard]] bool capturing() { return capture() != nullptr; }
  void join(std::shared_ptr<Capture> capture) {
    const std::lock_guard lock(mutex_);
    capture_ = std::move(capture);
  }
  void begin_capture() {
    const std::lock_guard lock(mutex_);
    capture_ = std::make_shared<Capture>();
    capture_->origin = this;
  }
  std::vector<Work> end_capture() {
    const std::shared_ptr<Capture> done = capture();
    bool all_joined = true;
    for (const auto& [worker, count] : done->pushed) {
      worker->join(nullptr);
      all_joined &= worker == this || done->joined[worker] == count;
    }
    join(nullptr);
    if (!all_joined)
      throw rondo::CudaError("cudaStreamEndCapture: work of another stream is not joined");
    return std::move(done->works);
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const Queued next = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      if (hardware_ != nullptr) hardware_->wait_for_turn(next.ticket);
      next.work();
      device_.end_work();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  struct Queued {
    Work work;
    std::uint64_t ticket = 0;  // of hardware_
  };

  StandInDevice& device_ = StandInDevice::number(device_in_use);
  HardwareQueue* hardware_ = HardwareQueue::next_of(device_in_use);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Queued> queue_;
  std::shared_ptr<Capture> capture_;
  bool busy_ = false;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace

struct CUstream_st {
  Worker worker;
  std::vector<void*> graph_memory;  // allocated while capturing
};

struct EventState {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t recorded = 0;
  std::uint64_t happened = 0;
  std::chrono::steady_clock::time_point time;
};

struct CUevent_st {
  // An event may be destroyed before it has happened.
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
  // If recorded in a capture: by which worker, and after how many of its operations.
  std::shared_ptr<Capture> capture;
  Worker* worker = nullptr;
  std::size_t pushed = 0;
};

struct CUmemPoolHandle_st {};

struct CUgraphExec_st {
  std::vector<Work> works;
  std::vector<void*> memory;  // the graph's own, on every replay the same
};

namespace rondo::test {
namespace {

struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  int fd = -1;  // of the memory, which other processes open through /proc
};

struct World {
  std::mutex mutex;
  std::map<std::byte*, Allocation> allocations;
  std::map<std::byte*, Allocation> opened;
  std::map<void*, std::size_t> registered;
  int streams = 0;
  int events = 0;
  int pools = 0;
  std::atomic<int> calls_until_failure = 0;  // fail_call()'s number; below 0 once it has failed
  std::map<int, std::unique_ptr<CUstream_st>> default_streams;
};

World& world() {
  static World* world = new World;  // outlives the threads of streams that nobody destroyed
  return *world;
}

void may_fail(const char* call) {
  std::atomic<int>& left = world().calls_until_failure;
  const bool chosen = left.load() > 0 && left.fetch_sub(1) == 1;
  if (chosen) left = -1;
  if (chosen || stand_in().fails == call) {
    throw CudaError(fmt::format("{} on device {}: told to fail", call, device_in_use));
  }
}

const Allocation* find(const std::map<std::byte*, Allocation>& in, const void* memory) {
  const auto* at = static_cast<const std::byte*>(memory);
  for (const auto& [base, allocation] : in) {
    if (at >= base && at < base + allocation.bytes) return &allocation;
  }
  return nullptr;
}

int owner_of(const void* memory) {
  const std::lock_guard lock(world().mutex);
  for (const auto* in : {&world().allocations, &world().opened}) {
    if (const Allocation* found = find(*in, memory)) return found->device;
  }
  throw CudaError("an address that is no device memory");
}

bool is_foreign(const void* memory) {
  const std::lock_guard lock(world().mutex);
  return find(world().opened, memory) != nullptr;
}

std::byte* map_file(int fd, std::size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return data == MAP_FAILED ? nullptr : static_cast<std::byte*>(data);
}

CUstream_st& of(CUstream_st* stream) {
  if (stream != nullptr) return *stream;
  const std::lock_guard lock(world().mutex);
  auto& made = world().default_streams[device_in_use];
  if (!made) made = std::make_unique<CUstream_st>();
  return *made;
}

struct HandleContent {
  std::int32_t process = 0;
  std::int32_t fd = 0;
  std::uint64_t bytes = 0;
  std::int32_t device = 0;
};
static_assert(sizeof(HandleContent) <= 64);

void run_kernel(const detail::gpu::Kernel& kernel, int device, int blocks, unsigned threads,
                const detail::gpu::KernelArguments& arguments) {
  TimeSlices turns(arguments.rank.rank, arguments.rank.size);
  StandInDevice::number(device).run_blocks(blocks, [&](int channel) {
    HostTeam team(threads, arguments.rank.size);
    std::vector<std::thread> workers;
    for (unsigned thread = 0; thread < threads; ++thread) {
      workers.emplace_back([&, thread] {
        HostBlock block(team, thread, turns);
        run_on_host(kernel, block, arguments, channel);
      });
    }
    for (std::thread& worker : workers) worker.join();
  });
}

}  // namespace

StandIn& stand_in() {
  static StandIn settings = [] {
    StandIn made;
    if (const char* devices = std::getenv("STAND_IN_DEVICES")) made.devices = std::stoi(devices);
    const char* said = std::getenv("STAND_IN_MODES");
    const std::string modes = said == nullptr ? "" : said;
    const auto is_on = [&modes](const char* name) { return modes.find(name) != std::string::npos; };
    made.modes = {is_on("lazy_loading"), is_on("shared_queues"), is_on("few_places"),
                  is_on("time_slices"), is_on("pool_waits")};
    return made;
  }();
  return settings;
}

void enqueue(CUstream_st* stream, std::function<void()> work) {
  of(stream).worker.push(std::move(work));
}

void fail_call(int number) { world().calls_until_failure = number; }
bool call_has_failed() { return world().calls_until_failure < 0; }

StandInBalance stand_in_balance() {
  const std::lock_guard lock(world().mutex);
  return {static_cast<int>(world().allocations.size()),
          static_cast<int>(world().registered.size()),
          static_cast<int>(world().opened.size()),
          world().streams,
          world().events,
          world().pools};
}

}  // namespace rondo::test

namespace rondo::detail::gpu::api {

using test::may_fail;
using test::stand_in;
using test::world;

int device_count() { return stand_in().devices; }
std::string why_no_device() { return "the stand-in was told to have none"; }

DeviceFacts facts_of(int device) {
  DeviceFacts facts;
  fmt::format_to_n(facts.name.data(), facts.name.size() - 1, "stand-in {}", device);
  facts.uuid[0] = static_cast<char>('a' + device);
  fmt::format_to_n(facts.pci_bus.data(), facts.pci_bus.size() - 1, "0000:{:02x}:00.0", device + 1);
  facts.multiprocessors = 4;
  return facts;
}

int current_device() { return device_in_use; }
// fail_call() does not count this call, since releasing a resource needs it too.
void use_device(int device) { device_in_use = device; }
bool in_use(int /*device*/) { return true; }
bool can_reach(int device, int peer) { return stand_in().cannot_reach.count({device, peer}) == 0; }
bool atomics_between(int device, int peer) {
  return !stand_in().nvlinks || stand_in().nvlinks->count({device, peer}) != 0;
}
void enable_peer(int peer) {
  may_fail("cudaDeviceEnablePeerAccess");
  if (device_in_use == peer) throw CudaError("cudaDeviceEnablePeerAccess: invalid device");
}

}  // namespace rondo::detail::gpu::api

namespace rondo::test {
namespace {

std::byte* take_memory(std::size_t bytes) {
  const std::lock_guard lock(world().mutex);
  const int fd = ::memfd_create("rondo-stand-in", MFD_CLOEXEC);
  std::byte* data = nullptr;
  if (fd >= 0 && ::ftruncate(fd, static_cast<off_t>(bytes)) == 0) data = map_file(fd, bytes);
  if (data == nullptr) throw CudaError("cudaMalloc: out of memory");
  world().allocations[data] = {bytes, device_in_use, fd};
  return data;
}

void give_memory_back(void* memory) {
  const std::lock_guard lock(world().mutex);
  const auto at = world().allocations.find(static_cast<std::byte*>(memory));
  if (at == world().allocations.end()) throw CudaError("cudaFree: not allocated");
  ::munmap(memory, at->second.bytes);
  ::close(at->second.fd);
  world().allocations.erase(at);
}

}  // namespace
}  // namespace rondo::test

namespace rondo::detail::gpu::api {

void* allocate(std::size_t bytes) {
  may_fail("cudaMalloc");
  const auto idle = StandInDevice::number(device_in_use).idle();
  return test::take_memory(bytes);
}

void release(void* memory) {
  const auto idle = StandInDevice::number(test::owner_of(memory)).idle();
  test::give_memory_back(memory);
}

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void copy_async(void* to, const void* from, std::size_t bytes, Stream stream) {
  may_fail("cudaMemcpyAsync");
  test::of(stream).worker.push([=] { std::memcpy(to, from, bytes); });
}
void clear_async(void* memory, std::size_t bytes, Stream stream) {
  may_fail("cudaMemsetAsync");
  test::of(stream).worker.push([=] { std::memset(memory, 0, bytes); });
}
// A pool's memory is allocated like any other here; only the pools are counted.
Pool make_pool(int /*device*/) {
  may_fail("cudaMemPoolCreate");
  const std::lock_guard lock(world().mutex);
  ++world().pools;
  return new CUmemPoolHandle_st;
}
void destroy(Pool pool) {
  delete pool;
  const std::lock_guard lock(world().mutex);
  --world().pools;
}
void* allocate_async(Pool /*pool*/, std::size_t bytes, Stream stream) {
  may_fail("cudaMallocFromPoolAsync");
  std::unique_lock<std::mutex> idle;
  if (stand_in().modes.pool_waits) idle = StandInDevice::number(device_in_use).idle();
  void* memory = test::take_memory(bytes);
  CUstream_st& on = test::of(stream);
  if (on.worker.capturing()) on.graph_memory.push_back(memory);
  return memory;
}
void release_async(void* memory, Stream stream) {
  if (test::of(stream).worker.capturing()) return;
  test::of(stream).worker.push([memory] { test::give_memory_back(memory); });
}

void* register_host(void* memory, std::size_t bytes) {
  may_fail("cudaHostRegister");
  const auto idle = StandInDevice::number(device_in_use).idle();
  const std::lock_guard lock(world().mutex);
  world().registered[memory] = bytes;
  return memory;
}
void unregister_host(void* memory) {
  const auto idle = StandInDevice::number(device_in_use).idle();
  const std::lock_guard lock(world().mutex);
  if (world().registered.erase(memory) == 0) throw CudaError("cudaHostUnregister: not registered");
}

IpcHandle export_memory(void* memory) {
  may_fail("cudaIpcGetMemHandle");
  if (!stand_in().ipc_works) throw CudaError("cudaIpcGetMemHandle: not supported");
  const std::lock_guard lock(world().mutex);
  const auto& allocation = world().allocations.at(static_cast<std::byte*>(memory));
  test::HandleContent content;
  content.process = ::getpid();
  content.fd = allocation.fd;
  content.bytes = allocation.bytes;
  content.device = allocation.device;
  IpcHandle handle;
  std::memcpy(handle.handle.data(), &content, sizeof(content));
  return handle;
}

void* open_memory(const IpcHandle& handle) {
  may_fail("cudaIpcOpenMemHandle");
  const auto idle = StandInDevice::number(device_in_use).idle();
  test::HandleContent content;
  std::memcpy(&content, handle.handle.data(), sizeof(content));
  const int fd = ::open(fmt::format("/proc/{}/fd/{}", content.process, content.fd).c_str(), O_RDWR);
  std::byte* data = fd < 0 ? nullptr : test::map_file(fd, content.bytes);
  ::close(fd);
  if (data == nullptr) throw CudaError("cudaIpcOpenMemHandle: no such memory");
  const std::lock_guard lock(world().mutex);
  world().opened[data] = {content.bytes, content.device, -1};
  return data;
}

void close_memory(void* base) {
  const auto idle = StandInDevice::number(device_in_use).idle();
  const std::lock_guard lock(world().mutex);
  const auto at = world().opened.find(static_cast<std::byte*>(base));
  if (at == world().opened.end()) throw CudaError("cudaIpcCloseMemHandle: not open");
  ::munmap(base, at->second.bytes);
  world().opened.erase(at);
}

Stream make_stream(bool /*urgent*/) {
  may_fail("cudaStreamCreate");
  const std::lock_guard lock(world().mutex);
  ++world().streams;
  return new CUstream_st;
}
void destroy(Stream stream) {
  delete stream;
  const std::lock_guard lock(world().mutex);
  --world().streams;
}
void wait_for(Stream stream) { test::of(stream).worker.wait(); }
bool is_capturing(Stream stream) { return test::of(stream).worker.capturing(); }

Event make_event(bool /*timed*/) {
  may_fail("cudaEventCreate");
  const std::lock_guard lock(world().mutex);
  ++world().events;
  return new CUevent_st;
}
void destroy(Event event) {
  delete event;
  const std::lock_guard lock(world().mutex);
  --world().events;
}
void record(Event event, Stream stream) {
  may_fail("cudaEventRecord");
  Worker& worker = test::of(stream).worker;
  event->capture = worker.capture();
  if (event->capture) {
    event->worker = &worker;
    event->pushed = event->capture->pushed[&worker];
    return;
  }
  const std::shared_ptr<EventState> state = event->state;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = ++state->recorded;
  }
  worker.push([state, number] {
    const std::lock_guard lock(state->mutex);
    state->happened = number;
    state->time = std::chrono::steady_clock::now();
    state->changed.notify_all();
  });
}
void wait_for(Event event) {
  EventState& state = *event->state;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return state.happened >= state.recorded; });
}
void wait_for(Event event, Stream stream) {
  may_fail("cudaStreamWaitEvent");
  if (event->capture) {
    Worker& worker = test::of(stream).worker;
    if (worker.capture() != event->capture) worker.join(event->capture);
    if (&worker == event->capture->origin) event->capture->joined[event->worker] = event->pushed;
    return;
  }
  const std::shared_ptr<EventState> state = event->state;
  std::uint64_t number = 0;
  {
    const std::lock_guard lock(state->mutex);
    number = state->recorded;
  }
  test::of(stream).worker.push([state, number] {
    std::unique_lock lock(state->mutex);
    state->changed.wait(lock, [&] { return state->happened >= number; });
  });
}
double microseconds_between(Event from, Event to) {
  return std::chrono::duration<double, std::micro>(to->state->time - from->state->time).count();
}

void begin_capture(Stream stream) { test::of(stream).worker.begin_capture(); }
Graph end_capture(Stream stream) {
  CUstream_st& from = test::of(stream);
  return new CUgraphExec_st{from.worker.end_capture(), std::exchange(from.graph_memory, {})};
}
void launch(Graph graph, Stream stream) {
  for (const Work& work : graph->works) test::of(stream).worker.push(work);
}
void destroy(Graph graph) {
  for (void* memory : graph->memory) release(memory);
  delete graph;
}

}  // namespace rondo::detail::gpu::api

namespace rondo::detail::gpu::kernels {

using test::may_fail;
using test::stand_in;

void load_all() {
  may_fail("cudaFuncGetAttributes");
  StandInDevice::number(device_in_use).load_all();
}
int resident_blocks(int /*threads*/, int /*ranks*/) {
  may_fail("cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return stand_in().resident_blocks;
}
void start(const Kernel& kernel, int blocks, int /*threads*/, const KernelArguments& arguments,
           api::Stream stream) {
  may_fail("cudaLaunchKernel");
  const unsigned threads = stand_in().threads_per_block;
  const int device = device_in_use;
  StandInDevice::number(device).load_at_first_start(
      fmt::format("{} {} {}", static_cast<int>(kernel.kind), name(kernel.type), name(kernel.op)));
  test::of(stream).worker.push(
      [=] { test::run_kernel(kernel, device, blocks, threads, arguments); });
}

void write_pattern(void* memory, std::size_t words, std::uint64_t seed, api::Stream stream) {
  may_fail("cudaLaunchKernel");
  if (stand_in().loses_foreign_writes && test::is_foreign(memory)) return;
  if (stand_in().loses_writes.count({device_in_use, test::owner_of(memory)}) != 0) return;
  StandInDevice::number(device_in_use).load_at_first_start("write_pattern");
  test::of(stream).worker.push([=] {
    auto* to = static_cast<std::uint64_t*>(memory);
    for (std::size_t i = 0; i < words; ++i) to[i] = exact::mix((seed << 32U) + i);
  });
}
void count_wrong_words(const void* memory, std::size_t words, std::uint64_t seed,
                       std::uint64_t* wrong, api::Stream stream) {
  may_fail("cudaLaunchKernel");
  StandInDevice::number(device_in_use).load_at_first_start("count_wrong_words");
  test::of(stream).worker.push([=] {
    const auto* from = static_cast<const std::uint64_t*>(memory);
    for (std::size_t i = 0; i < words; ++i) {
      *wrong += from[i] == exact::mix((seed << 32U) + i) ? 0 : 1;
    }
  });
}

std::uint64_t write_words(std::uint64_t* to, std::span<const std::uint64_t> words,
                          api::Stream stream) {
  may_fail("cudaLaunchKernel");
  StandInDevice::number(device_in_use).load_at_first_start("write_words");
  test::of(stream).worker.push([to, kept = std::vector(words.begin(), words.end())] {
    std::copy(kept.begin(), kept.end(), to);
  });
  return 1;
}

void scale_async(void* to, DataType to_type, const void* from, DataType from_type,
                 std::size_t count, double factor, api::Stream stream) {
  may_fail("cudaLaunchKernel");
  StandInDevice::number(device_in_use).load_at_first_start("scale_async");
  test::of(stream).worker.push([=] { scale(to, to_type, from, from_type, count, factor); });
}
}  // namespace rondo::detail::gpu::kernels
