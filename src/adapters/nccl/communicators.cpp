// How communicators are made, asked and left.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rondo/cuda.hpp>
#include <rondo/options.hpp>
#include <rondo/start.hpp>
#include <rondo/version.hpp>

#include "adapters/nccl/communicator.hpp"
#include "adapters/nccl/device.hpp"
#include "adapters/nccl/errors.hpp"
#include "adapters/nccl/functions.hpp"
#include "adapters/nccl/group.hpp"
#include "adapters/nccl/interface.hpp"
#include "adapters/nccl/real_library.hpp"
#include "adapters/nccl/unique_id.hpp"

namespace rondo::nccl_programs {
namespace {

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// NCCL's calls have no deadline, unless the user gives those of Rondo one.
CommunicatorOptions without_deadline() {
  CommunicatorOptions options;
  if (!is_set("RONDO_TIMEOUT")) options.timeout = std::chrono::hours{24 * 365 * 10};
  return options;
}

// Collective.
ncclComm_t made_of(cuda::Communicator devices, const std::shared_ptr<Family>& family) {
  auto comm = std::make_unique<ncclComm>(std::move(devices));
  join_by_real_library(*comm);
  if (family != nullptr) family->add();
  comm->family = family;
  return comm.release();
}

cuda::Communicator joined(const MeetingPlace& place, int rank, int size, int device) {
  CommunicatorOptions options = without_deadline();
  // The user's own secret is safer than one that the program has carried to all ranks.
  if (!is_set("RONDO_SECRET")) options.network.secret = place.secret;
  Communicator host = from_store(place.url, rank, size, options);
  if (rank == 0) release_port(place);
  cuda::Options on_devices;
  on_devices.device = device;
  return cuda::join(std::move(host), on_devices);
}

ncclResult_t join(ncclComm_t* comm, int size, const ncclUniqueId& id, int rank) {
  return result_of([&] {
    not_null(comm, "the place for the communicator") = nullptr;
    if (size < 1 || rank < 0 || rank >= size) {
      throw InvalidArgument("there is no rank " + std::to_string(rank) + " among " +
                            std::to_string(size) + " ranks");
    }
    const int device = current_device();
    join_together(nullptr,
                  [comm, size, rank, device, place = parse(id), family = family_of_group()] {
                    *comm = made_of(joined(place, rank, size, device), family);
                  });
  });
}

std::vector<int> devices_of(int count, const int* devices) {
  std::vector<int> all;
  for (int i = 0; i < count; ++i) all.push_back(devices != nullptr ? devices[i] : i);
  return all;
}

}  // namespace

std::vector<std::unique_ptr<ncclComm>> Family::take(std::unique_ptr<ncclComm> one) {
  const std::lock_guard lock(mutex_);
  destroyed_.push_back(std::move(one));
  if (--members_ > 0) return {};
  return std::exchange(destroyed_, {});
}

}  // namespace rondo::nccl_programs

namespace nccl = rondo::nccl_programs;

extern "C" {

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int size, ncclUniqueId id, int rank) {
  return nccl::join(comm, size, id, rank);
}

// Calls return when they are done, whatever `config` says of blocking; the rest of it tunes NCCL.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int size, ncclUniqueId id, int rank,
                                    void* /*config*/) {
  return nccl::join(comm, size, id, rank);
}

// One id is enough: rank 0 listens at one place. The first id is the same on all ranks.
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int size, int rank, int ids,
                                      ncclUniqueId* id, void* /*config*/) {
  if (id == nullptr || ids < 1) {
    return nccl::remember(ncclInvalidArgument, "ncclCommInitRankScalable needs an ncclUniqueId");
  }
  return nccl::join(comm, size, *id, rank);
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* devices) {
  return nccl::result_of([&] {
    nccl::not_null(comms, "the place for the communicators");
    if (count < 1) throw nccl::InvalidArgument("ncclCommInitAll needs at least one device");
    std::vector<rondo::cuda::Communicator> ranks =
        rondo::cuda::local_group(nccl::devices_of(count, devices), {}, nccl::without_deadline());
    const auto family = std::make_shared<nccl::Family>();
    std::vector<std::unique_ptr<ncclComm>> made(ranks.size());
    std::vector<std::function<void()>> joins;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      joins.emplace_back([&rank = ranks[i], &comm = made[i], &family] {
        comm.reset(nccl::made_of(std::move(rank), family));
      });
    }
    nccl::run_together(joins);
    for (std::size_t i = 0; i < made.size(); ++i) comms[i] = made[i].release();
  });
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made,
                           void* /*config*/) {
  return nccl::result_of([&] {
    ncclComm& parent = nccl::usable(comm);
    nccl::not_null(made, "the place for the communicator") = nullptr;
    if (color < kNcclSplitNoColor) {
      throw nccl::InvalidArgument("the color is " + std::to_string(color) +
                                  "; it must be 0 or more, or NCCL_SPLIT_NOCOLOR");
    }
    const std::optional<int> its_color =
        color == kNcclSplitNoColor ? std::nullopt : std::optional(color);
    nccl::join_together(&parent, [&parent, its_color, key, made, family = nccl::family_of_group()] {
      if (auto part = parent.devices.split(its_color, key))
        *made = nccl::made_of(std::move(*part), family);
    });
  });
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return nccl::result_of([comm] { nccl::usable(comm).finalized = true; });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return nccl::result_of([comm] {
    if (comm == nullptr) return;
    std::unique_ptr<ncclComm> owned(comm);
    if (const auto family = comm->family) {
      nccl::destroy(family->take(std::move(owned)));
    } else {
      std::vector<std::unique_ptr<ncclComm>> one;
      one.push_back(std::move(owned));
      nccl::destroy(std::move(one));
    }
  });
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int /*flags*/) {
  return nccl::result_of([comm] {
    if (comm == nullptr) return;
    comm->devices.abort("the program has called ncclCommAbort or ncclCommRevoke");
    if (comm->real != nullptr) nccl::abort_by_real_library(*comm);
  });
}

// A thread that is in a call gets its error first.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const ncclResult_t result = ncclCommRevoke(comm, 0);
  if (comm == nullptr) return result;
  {
    const std::unique_lock nobody_is_in_a_call(comm->in_use);
  }
  const ncclResult_t destroyed = ncclCommDestroy(comm);
  return result != ncclSuccess ? result : destroyed;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  return nccl::result_of([&] {
    nccl::not_null(comm, "the communicator");
    nccl::not_null(error, "the place for the result") =
        nccl::result_of([comm] { comm->devices.check(); });
    if (*error == ncclSuccess && comm->real != nullptr) {
      *error = nccl::async_error_of_real_library(*comm);
    }
  });
}

ncclResult_t ncclCommCount(ncclComm_t comm, int* count) {
  return nccl::result_of([&] {
    nccl::not_null(count, "the place for the number") =
        nccl::not_null(comm, "the communicator").size;
  });
}

ncclResult_t ncclCommUserRank(ncclComm_t comm, int* rank) {
  return nccl::result_of([&] {
    nccl::not_null(rank, "the place for the rank") = nccl::not_null(comm, "the communicator").rank;
  });
}

ncclResult_t ncclCommCuDevice(ncclComm_t comm, int* device) {
  return nccl::result_of([&] {
    nccl::not_null(device, "the place for the device") =
        nccl::not_null(comm, "the communicator").devices.device();
  });
}

const char* ncclRondoVersion() { return RONDO_VERSION; }

// Programs ask for what a version has. Up to 2.21 there are splits, configurations and memory of
// NCCL's own, and no windows.
ncclResult_t ncclGetVersion(int* version) {
  return nccl::result_of(
      [version] { nccl::not_null(version, "the place for the version") = 22105; });
}
}
