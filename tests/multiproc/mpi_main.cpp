// Runs every test on all ranks of MPI_COMM_WORLD; rank 0 prints, the others only when they fail.
// MPI's thread level is multiple, or what RONDO_TEST_THREADS says; where MPI gives another, the
// exit code is 77 (skipped), with the reason.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <gtest/gtest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  int level = 0;
  const char* wanted = std::getenv("RONDO_TEST_THREADS");
  const std::string_view text = wanted == nullptr ? "multiple" : wanted;
  const int asked = text == "funneled"     ? MPI_THREAD_FUNNELED
                    : text == "serialized" ? MPI_THREAD_SERIALIZED
                                           : MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&argc, &argv, asked, &level);
  ::testing::InitGoogleTest(&argc, argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (wanted != nullptr && level != asked) {
    if (rank == 0) std::printf("skipped: MPI's thread level is not %s here\n", wanted);
    MPI_Finalize();
    constexpr int kSkipped = 77;
    return kSkipped;
  }
  auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
  if (rank != 0) {
    class Failures : public ::testing::EmptyTestEventListener {
     public:
      explicit Failures(int on_rank) : rank_(on_rank) {}
      void OnTestPartResult(const ::testing::TestPartResult& result) override {
        if (result.failed()) {
          std::fprintf(stderr, "rank %d: %s:%d: %s\n", rank_, result.file_name(),
                       result.line_number(), result.message());
        }
      }

     private:
      int rank_;
    };
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures(rank));
  }
  int failed = RUN_ALL_TESTS();
  MPI_Allreduce(MPI_IN_PLACE, &failed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return failed;
}
