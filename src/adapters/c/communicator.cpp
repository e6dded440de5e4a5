#include <rondo/communicator.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "adapters/c/handles.hpp"

namespace c = rondo::c_interface;

namespace {

rondo_carrier carrier_in_c(rondo::Carrier carrier) {
  switch (carrier) {
    case rondo::Carrier::shm:
      return RONDO_SHM;
    case rondo::Carrier::mpi:
      return RONDO_MPI;
    case rondo::Carrier::ucx:
      return RONDO_UCX;
    case rondo::Carrier::p2p:
      return RONDO_P2P;
    case rondo::Carrier::ipc:
      return RONDO_IPC;
    case rondo::Carrier::pinned:
      return RONDO_PINNED;
  }
  return RONDO_ANY_CARRIER;
}

}  // namespace

rondo_status rondo_from_environment(const rondo_options* options, rondo_comm** comm) noexcept {
  return c::make_comm(comm, [&] { return rondo::from_environment(c::options_of(options)); });
}

rondo_status rondo_from_store(const char* url, int rank, int size, const rondo_options* options,
                              rondo_comm** comm) noexcept {
  return c::make_comm(comm, [&] {
    return rondo::from_store(&c::required(url, "url"), rank, size, c::options_of(options));
  });
}

rondo_status rondo_from_socket(const char* path, int rank, int size, const rondo_options* options,
                               rondo_comm** comm) noexcept {
  return c::make_comm(comm, [&] {
    return rondo::from_socket(&c::required(path, "path"), rank, size, c::options_of(options));
  });
}

rondo_status rondo_local_group(int size, const rondo_options* options,
                               rondo_comm** comms) noexcept {
  if (comms != nullptr && size > 0) std::fill_n(comms, size, nullptr);
  return c::status_of([&] {
    std::vector<std::unique_ptr<rondo_comm>> made;
    static_cast<void>(c::required(comms, "comms"));
    for (rondo::Communicator& one : rondo::local_group(size, c::options_of(options))) {
      made.push_back(std::make_unique<rondo_comm>(std::move(one)));
    }
    for (std::size_t rank = 0; rank < made.size(); ++rank) comms[rank] = made[rank].release();
  });
}

rondo_status rondo_split(rondo_comm* comm, const int* color, int key, rondo_comm** part) noexcept {
  if (part != nullptr) *part = nullptr;
  return c::status_of([&] {
    rondo_comm*& result = c::required(part, "part");
    const std::optional<int> its_color =
        color == nullptr ? std::nullopt : std::optional<int>(*color);
    std::optional<rondo::Communicator> made = c::communicator_of(comm).split(its_color, key);
    if (made) result = std::make_unique<rondo_comm>(std::move(*made)).release();
  });
}

rondo_status rondo_duplicate(rondo_comm* comm, rondo_comm** other) noexcept {
  return c::make_comm(other, [&] { return c::communicator_of(comm).duplicate(); });
}

void rondo_comm_destroy(rondo_comm* comm) noexcept { delete comm; }

int rondo_rank(const rondo_comm* comm) noexcept { return comm->communicator->rank(); }
int rondo_size(const rondo_comm* comm) noexcept { return comm->communicator->size(); }

rondo_status rondo_abort(rondo_comm* comm, const char* reason) noexcept {
  return c::status_of([&] { c::communicator_of(comm).abort(&c::required(reason, "reason")); });
}

int rondo_ended(const rondo_comm* comm) noexcept { return comm->communicator->ended() ? 1 : 0; }

const char* rondo_launcher() noexcept {
  thread_local std::string kept;
  const char* launcher = "";
  c::status_of([&] { launcher = c::keep(kept, rondo::launcher()); });
  return launcher;
}

rondo_status rondo_get_place(const rondo_comm* comm, int rank, rondo_place* place) noexcept {
  return c::status_of([&] {
    const rondo::Communicator& communicator = c::communicator_of(comm);
    if (rank < 0 || rank >= communicator.size()) {
      throw rondo::UsageError(
          fmt::format("rondo_get_place: rank {} is none of {}", rank, communicator.size()));
    }
    const rondo::RankPlace& of_rank =
        communicator.topology().places[static_cast<std::size_t>(rank)];
    c::give<rondo_place>(place,
                         {0, of_rank.host.c_str(), of_rank.process_id, of_rank.numa_node,
                          of_rank.device.c_str(), of_rank.host_id},
                         "rondo_place");
  });
}

int rondo_ring_rank(const rondo_comm* comm, int place) noexcept {
  const std::vector<int>& ring = comm->communicator->topology().ring;
  if (place < 0 || static_cast<std::size_t>(place) >= ring.size()) return -1;
  return ring[static_cast<std::size_t>(place)];
}

std::size_t rondo_edge_count(const rondo_comm* comm) noexcept {
  return comm->communicator->topology().edges.size();
}

rondo_status rondo_get_edge(const rondo_comm* comm, std::size_t index, rondo_edge* edge) noexcept {
  return c::status_of([&] {
    const std::vector<rondo::Edge>& edges = c::communicator_of(comm).topology().edges;
    if (index >= edges.size()) {
      throw rondo::UsageError(
          fmt::format("rondo_get_edge: edge {} is none of {}", index, edges.size()));
    }
    const rondo::Edge& found = edges[index];
    c::give<rondo_edge>(edge,
                        {0, found.from, found.to, carrier_in_c(found.carrier),
                         found.in_ring ? 1 : 0, found.reason.c_str()},
                        "rondo_edge");
  });
}

rondo_status rondo_this_machine(rondo_machine* machine) noexcept {
  thread_local rondo::Machine kept;
  return c::status_of([&] {
    kept = rondo::this_machine();
    c::give<rondo_machine>(machine,
                           {0, kept.host.c_str(), kept.cores, kept.numa_nodes, kept.l2_bytes,
                            kept.l3_bytes, kept.source.c_str()},
                           "rondo_machine");
  });
}

rondo_status rondo_bind_beside_compute(const rondo_comm* comm, const int* core,
                                       const char** place) noexcept {
  thread_local std::string kept;
  return c::status_of([&] {
    const rondo::Communicator& communicator = c::communicator_of(comm);
    const std::optional<int> its_core = core == nullptr ? std::nullopt : std::optional<int>(*core);
    const char* text = c::keep(
        kept, rondo::bind_beside_compute(communicator.topology(), communicator.rank(), its_core));
    if (place != nullptr) *place = text;
  });
}
