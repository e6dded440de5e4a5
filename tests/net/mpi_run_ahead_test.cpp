// Two processes: how far a sender runs ahead of a receiver that takes nothing.

#include <gtest/gtest.h>

#include "memory/shared_memory.hpp"
#include "net/mpi_messenger.hpp"
#include "net/pump.hpp"

namespace rondo::detail {
namespace {

constexpr FifoGeometry kGeometry{1024, 4};
constexpr std::uint64_t kMessages = 500;

TEST(MpiRunAhead, IsBoundedByMessagesThatTheReceiverAnswers) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  Mapping memory = map_private(contiguous_fifo_bytes(kGeometry));
  const FifoMemory fifo = contiguous_fifo(memory.data(), kGeometry);
  AbortBoard board;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PumpEdges edges;
  edges.board = &board;
  edges.fifos.push_back(std::move(memory));
  if (rank == 0) edges.out.push_back({1, {Algorithm::ring}, 0, RecvEnd(fifo)});
  if (rank == 1) edges.in.push_back({0, {Algorithm::ring}, 0, SendEnd(fifo)});
  Pump pump(message_by_mpi(comm), std::move(edges));
  if (rank == 0) {
    SendEnd end(fifo);
    std::uint64_t sent = 0;
    const auto send = [&] {
      pump.progress();
      if (sent == kMessages || !end.can_acquire()) return;
      end.slot()->signature.sequence = sent;
      end.slot()->bytes = kGeometry.slot_bytes;
      end.publish();
      ++sent;
    };
    for (int attempt = 0; attempt < 2000; ++attempt) send();
    // Its own slots, and what MPI buffered before the first synchronous message.
    EXPECT_LE(sent, 2 * kGeometry.slots);
    MPI_Barrier(MPI_COMM_WORLD);
    while (sent < kMessages || pump.busy_peer()) send();
  } else {
    MPI_Barrier(MPI_COMM_WORLD);  // until here the pump has not been driven
    RecvEnd end(fifo);
    for (std::uint64_t number = 0; number < kMessages; ++number) {
      while (!end.can_peek()) pump.progress();
      ASSERT_EQ(end.slot()->signature.sequence, number);
      end.release();
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace rondo::detail
