// The contracts of FIFOs and messengers for MPI: one process sends to itself.

#include "net/mpi_messenger.hpp"
#include "tests/fifo/fifo_contract.hpp"
#include "tests/fifo/pump_to_myself.hpp"
#include "tests/net/messenger_contract.hpp"

namespace rondo::detail {
namespace {

struct ByMpi {
  [[nodiscard]] static std::unique_ptr<Messenger> messenger() {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    return message_by_mpi(comm);
  }
};
using MpiToMyself = test::PumpToMyself<ByMpi>;

INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, FifoContract, MpiToMyself);
INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, MessengerContract, ByMpi);

// A peer may be in another call, by an algorithm with other edges. So a rank that waits long drives
// all edges.
TEST(Pump, DrivesTheEdgesOfItsCallUntilItIsAskedToDriveAll) {
  MpiToMyself fifo({Algorithm::naive});
  const auto arrives = [&] {
    for (int round = 0; round < 10000 && !fifo.recv_end().can_peek(); ++round) fifo.drive();
    return fifo.recv_end().can_peek();
  };
  fifo.pump().begin_call(Algorithm::ring);
  fifo.send_end().publish();
  EXPECT_FALSE(arrives());
  fifo.pump().drive_all();
  EXPECT_TRUE(arrives());
  fifo.recv_end().release();
  fifo.pump().begin_call(Algorithm::ring);
  fifo.send_end().publish();
  EXPECT_FALSE(arrives());
  fifo.pump().begin_call(Algorithm::naive);
  EXPECT_TRUE(arrives());
  fifo.recv_end().release();
}

// A confirmation that comes after MPI_Comm_free could be taken by a new communicator with the same
// number.
TEST(Pump, KeepsItsCommunicatorUntilExpectedConfirmationsHaveCome) {
  static int freed = 0;
  const auto on_delete = [](MPI_Comm, int, void*, void*) {
    ++freed;
    return MPI_SUCCESS;
  };
  int key = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr);
  for (const bool comes : {true, false}) {
    const Mapping memory = map_private(sizeof(AbortBoard));
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    freed = 0;
    MPI_Comm_set_attr(comm, key, nullptr);
    {
      PumpEdges edges;
      edges.ranks_elsewhere = {0};
      edges.board = reinterpret_cast<AbortBoard*>(memory.data());
      Pump pump(message_by_mpi(comm), std::move(edges));
      for (std::uint64_t call = 0; call < 3; ++call) {
        pump.notices().expect_confirmation(0, call);
        if (comes) pump.notices().tell_confirmed(call);
      }
    }
    EXPECT_EQ(freed, comes ? 1 : 0);
  }
  MPI_Comm_free_keyval(&key);
}

TEST(Pump, AnAbortReachesTheOtherSidesBoard) {
  const Mapping memory = map_private(sizeof(AbortBoard));
  auto& board = *reinterpret_cast<AbortBoard*>(memory.data());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  PumpEdges edges;
  edges.ranks_elsewhere = {0};
  edges.board = &board;
  Pump pump(message_by_mpi(comm), std::move(edges));
  pump.notices().announce_abort({3, "out of data"});
  for (int round = 0; round < 10000 && !board.raised(); ++round) pump.progress();
  ASSERT_TRUE(board.raised());
  EXPECT_EQ(board.read().rank, 3);
  EXPECT_EQ(board.read().text, "out of data");
}

}  // namespace
}  // namespace rondo::detail
