// Replaces CUDA by host memory and host threads, behind the same thin layer (api/api.hpp): device
// memory is shared memory, a stream is a thread, a kernel is the device protocol on host threads.
// Linked instead of the real layer. Tests set here what a device can do.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>

struct CUstream_st;

namespace rondo::test {

// What CUDA may do and mostly does not. On from the start where STAND_IN_MODES in the environment
// holds the name.
struct StandInModes {
  bool lazy_loading =
      false;  // a kernel that is not loaded is, when it is started, once the device is idle
  bool shared_queues = false;  // streams share CUDA_DEVICE_MAX_CONNECTIONS queues
  bool few_places = false;     // the blocks of kernels wait for places, in order
  bool time_slices = false;    // ranks take turns of 2 ms
  bool pool_waits = false;     // memory of a pool comes when the device is idle
};

struct StandIn {
  int devices = 4;  // or as many as STAND_IN_DEVICES in the environment says
  int resident_blocks = 16;
  unsigned threads_per_block = 1;
  bool ipc_works = true;
  std::set<std::pair<int, int>> cannot_reach;  // pairs of devices, in this direction
  // In this direction; unset: between all devices.
  std::optional<std::set<std::pair<int, int>>> nvlinks;
  std::set<std::pair<int, int>> loses_writes;  // reported as reachable, but writes do not arrive
  bool loses_foreign_writes = false;           // into memory of other processes
  std::string fails;                           // the call that fails: "cudaMalloc", say
  StandInModes modes;
};
StandIn& stand_in();

// Does this on a stream, or keeps it for the graph that is being captured from it.
void enqueue(CUstream_st* stream, std::function<void()> work);

// Makes one call fail, once: number `number` from now on, of all that allocate, enqueue or start
// something. 0: none.
void fail_call(int number);
// Whether that call has failed.
bool call_has_failed();

// What has been allocated and not yet released, on all devices.
struct StandInBalance {
  int allocations = 0;
  int registrations = 0;
  int opened = 0;
  int streams = 0;
  int events = 0;
  int pools = 0;

  friend bool operator==(const StandInBalance&, const StandInBalance&) = default;
};
StandInBalance stand_in_balance();

}  // namespace rondo::test
