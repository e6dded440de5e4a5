// Operations of the program's own by MPI, for which rank 0 waits while rank 1 waits in a call of
// Rondo's; on two ranks of one host, which Rondo joins by shared memory. RONDO_TEST_THREADS names
// MPI's thread level.

#include <algorithm>
#include <chrono>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

namespace rondo::test {
namespace {

// 4 MiB: MPI does not send them before the receiver has asked for them.
constexpr int kElems = 1 << 20;

bool rondo_may_drive_mpi() {
  int level = MPI_THREAD_SINGLE;
  MPI_Query_thread(&level);
  return level != MPI_THREAD_SERIALIZED;
}

// A barrier, for which a rank waits long. Where Rondo makes no MPI calls, the program does, as
// rondo/mpi.hpp says.
void barrier(Communicator& comm) {
  if (rondo_may_drive_mpi()) {
    comm.barrier();
    return;
  }
  const Work work = comm.barrier_async();
  while (!work.done()) {
    int found = 0;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
  }
  work.wait();
}

class MpiProgress : public ::testing::Test {
 protected:
  Communicator comm = from_mpi(MPI_COMM_WORLD, {.timeout = std::chrono::seconds(20)});
};

TEST_F(MpiProgress, ALargeIsend) {
  std::vector<int> data(kElems);
  if (comm.rank() == 1) {
    std::iota(data.begin(), data.end(), 7);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(data.data(), kElems, MPI_INT, 0, 1, MPI_COMM_WORLD, &request);
    barrier(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data.data(), kElems, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    barrier(comm);
    std::vector<int> expected(kElems);
    std::iota(expected.begin(), expected.end(), 7);
    EXPECT_EQ(data, expected);
  }
}

TEST_F(MpiProgress, ManyBarriersOfMpiBeforeOnesOfRondo) {
  for (int i = 0; i < 200; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    barrier(comm);
  }
}

// Rank 1 makes no MPI call of its own while rank 0 gets and puts.
TEST_F(MpiProgress, OneSidedOperations) {
  std::vector<int> window(kElems, comm.rank());
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(window.data(), MPI_Aint{kElems} * static_cast<MPI_Aint>(sizeof(int)), sizeof(int),
                 MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  if (comm.rank() == 0) {
    std::vector<int> got(kElems);
    const std::vector<int> put(100, 5);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, win);
    MPI_Get(got.data(), kElems, MPI_INT, 1, 0, kElems, MPI_INT, win);
    MPI_Win_flush(1, win);
    MPI_Put(put.data(), 100, MPI_INT, 1, 10, 100, MPI_INT, win);
    MPI_Win_unlock(1, win);
    EXPECT_EQ(got, std::vector<int>(kElems, 1));
    barrier(comm);
  } else {
    barrier(comm);
    std::vector<int> expected(kElems, 1);
    std::fill(expected.begin() + 10, expected.begin() + 110, 5);
    EXPECT_EQ(window, expected);
  }
  MPI_Win_free(&win);
}

// A communicator that is split off drives MPI too.
TEST_F(MpiProgress, ADuplicate) {
  Communicator copy = comm.duplicate();
  std::vector<int> data(kElems, comm.rank() + 3);
  if (comm.rank() == 1) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(data.data(), kElems, MPI_INT, 0, 2, MPI_COMM_WORLD, &request);
    barrier(copy);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(data.data(), kElems, MPI_INT, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    barrier(copy);
    EXPECT_EQ(data, std::vector<int>(kElems, 4));
  }
}

}  // namespace
}  // namespace rondo::test
