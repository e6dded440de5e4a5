// The FIFO contract for the MPI pump: one process sends to itself.

#include "carrier/memory.hpp"
#include "carrier/mpi_pump.hpp"
#include "tests/fifo/fifo_contract.hpp"

namespace rondo::detail {
namespace {

constexpr FifoGeometry kGeometry{1024, 4};

class MpiToMyself {
 public:
  MpiToMyself() {
    const FifoMemory out = contiguous_fifo(out_.data(), kGeometry);
    const FifoMemory in = contiguous_fifo(in_.data(), kGeometry);
    send_ = SendEnd(out);
    recv_ = RecvEnd(in);
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    PumpEdges edges;
    edges.out.push_back({0, {Algorithm::ring}, 0, RecvEnd(out)});
    edges.in.push_back({0, {Algorithm::ring}, 0, SendEnd(in)});
    edges.board = &board_;
    pump_ = std::make_unique<MpiPump>(comm, std::move(edges));
  }
  [[nodiscard]] static FifoGeometry geometry() { return kGeometry; }
  // Both local FIFOs, and what MPI buffers: a message in every half FIFO is synchronous.
  [[nodiscard]] static std::uint64_t capacity() { return std::uint64_t{3} * kGeometry.slots; }
  SendEnd& send_end() { return send_; }
  RecvEnd& recv_end() { return recv_; }
  void drive() { pump_->progress(); }

 private:
  Mapping out_ = map_private(contiguous_fifo_bytes(kGeometry));
  Mapping in_ = map_private(contiguous_fifo_bytes(kGeometry));
  AbortBoard board_;
  SendEnd send_;
  RecvEnd recv_;
  std::unique_ptr<MpiPump> pump_;
};

INSTANTIATE_TYPED_TEST_SUITE_P(Mpi, FifoContract, MpiToMyself);

TEST(MpiPump, AnAbortReachesTheOtherSidesBoard) {
  const Mapping memory = map_private(sizeof(AbortBoard));
  auto& board = *reinterpret_cast<AbortBoard*>(memory.data());
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_SELF, &comm);
  PumpEdges edges;
  edges.ranks_elsewhere = {0};
  edges.board = &board;
  MpiPump pump(comm, std::move(edges));
  pump.announce_abort({3, "out of data"});
  for (int round = 0; round < 10000 && !board.raised(); ++round) pump.progress();
  ASSERT_TRUE(board.raised());
  EXPECT_EQ(board.read().rank, 3);
  EXPECT_EQ(board.read().text, "out of data");
}

}  // namespace
}  // namespace rondo::detail
