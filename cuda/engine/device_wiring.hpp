// Everything that joins one rank's device to the others'. Made by joining/, owned by the
// communicator.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <rondo/cuda.hpp>

#include "cuda/api/handles.hpp"
#include "cuda/api/operations_ahead.hpp"
#include "cuda/engine/control_segment.hpp"
#include "cuda/engine/device_registry.hpp"
#include "cuda/engine/exposed_layout.hpp"
#include "cuda/engine/pinned_mapping.hpp"
#include "cuda/protocol/arguments.hpp"
#include "net/pump.hpp"
#include "plan/algorithms.hpp"

namespace rondo::detail::gpu {

// What puts the calls of a rank in order on its device.
struct CallHandles {
  explicit CallHandles(int device)
      : last_call(make_event(device)), scratch(make_pool(device)), ahead(device) {}

  OwnedEvent last_call;
  OwnedPool scratch;  // for what `naive` adds up
  OperationsAhead ahead;
};

struct DeviceWiring {
  int rank = 0;
  int device = 0;
  int threads = 0;
  DeviceGeometry geometry;
  Topology topology;
  Offers offers;
  bool one_device = false;            // all ranks are in this process, on one device
  std::vector<bool> in_this_process;  // by rank
  bool shared_by_ipc = false;         // another process may have this rank's memory open
  RankView view;
  std::uint64_t* borders = nullptr;  // in device memory: of chunks with sizes of their own
  ControlSegment control;
  std::vector<int> ranks_sharing;  // the control segment, this rank among them
  // This rank's device memory, and the memory of others that it reaches, which must be released
  // first.
  std::shared_ptr<DeviceMemory> exposed;
  MappedMemory mapped;
  std::optional<CallHandles> handles;
  PinnedMapping pumped;        // FIFOs whose other side is the pump
  std::unique_ptr<Pump> pump;  // null when no edge leaves this host
  PumpEdges unopened;  // edges for `pairwise`, which the pump carries from their first use on
};

}  // namespace rondo::detail::gpu
