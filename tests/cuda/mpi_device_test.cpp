// Devices of MPI's ranks, under mpirun: on one host by IPC, between hosts by the pump. On the
// stand-in.

#include <chrono>
#include <optional>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <mpi.h>

#include <rondo/mpi.hpp>

#include "tests/cuda/device_checks.hpp"
#include "tests/cuda/device_exchanges.hpp"

namespace rondo::test {
namespace {

TEST(MpiDevices, EveryCollective) {
  cuda::Communicator comm =
      cuda::join(from_mpi(MPI_COMM_WORLD), {.device = cuda::kSpreadOverDevices});
  bool one_host = true;
  for (const Edge& edge : comm.topology().edges) {
    const auto& places = comm.topology().places;
    const bool same = on_one_host(places[static_cast<std::size_t>(edge.from)],
                                  places[static_cast<std::size_t>(edge.to)]);
    EXPECT_EQ(edge.carrier, same ? Carrier::ipc : Carrier::mpi) << edge.reason;
    one_host = one_host && same;
  }
  DeviceRank rank(comm);
  for (const std::size_t count : {0U, 1U, 1000U, 200003U}) {
    prepare_all_collectives<float>(rank, count, comm.size() > 1 && one_host && count <= 1000);
    rank.run();
  }
}

TEST(MpiDevices, EveryExchange) {
  cuda::Communicator comm =
      cuda::join(from_mpi(MPI_COMM_WORLD), {.device = cuda::kSpreadOverDevices});
  check_device_exchanges<std::int32_t>(comm);
}

TEST(MpiDevices, AnAbortReachesTheKernelsOfAllHosts) {
  cuda::Communicator comm =
      cuda::join(from_mpi(MPI_COMM_WORLD), {.device = cuda::kSpreadOverDevices});
  if (comm.size() == 1) return;
  const DeviceStream stream(comm.device());
  const DeviceBuffer<float> buffer(comm.device(), 1000, 1.0F);
  const int last = comm.size() - 1;
  MPI_Barrier(MPI_COMM_WORLD);  // all have joined
  try {
    if (comm.rank() == last) {
      comm.abort("enough");
      comm.check();
    } else {
      comm.all_reduce(buffer.span(), ReduceOp::sum, stream.get());
      comm.wait(stream.get());
    }
    ADD_FAILURE() << "rank " << comm.rank() << " did not fail";
  } catch (const PeerError& error) {
    EXPECT_NE(std::string_view(error.what()).find("enough"), std::string_view::npos)
        << error.what();
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// The pump takes to another host what a kernel has published, also when the sender's communicator
// ends first.
TEST(MpiDevices, WhatWasSentArrivesThoughTheSenderLeavesAtOnce) {
  constexpr std::size_t kCount = 200003;  // more than the slots hold
  for (int round = 0; round < 5; ++round) {
    const float value = 3.0F + static_cast<float>(round);
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::vector<float> data(kCount, rank == 0 ? value : 0.0F);
    std::optional<cuda::Communicator> comm =
        cuda::join(from_mpi(MPI_COMM_WORLD), {.device = cuda::kSpreadOverDevices});
    if (comm->size() == 1) return;
    const DeviceStream stream(comm->device());
    const DeviceBuffer<float> buffer(comm->device(), data);
    comm->broadcast(buffer.span(), 0, stream.get(), {.algorithm = Algorithm::ring});
    comm->wait(stream.get());
    EXPECT_EQ(buffer.read(), std::vector<float>(kCount, value));
    comm.reset();
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace
}  // namespace rondo::test
