// The C interface between processes; in_c.c is a program in C.

#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.h>

#include "tests/support/forked.hpp"

extern "C" int use_rondo_in_c(rondo_comm* comm);

namespace rondo::test {
namespace {

TEST(CInterfaceOfProcesses, Joins) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    rondo_comm* comm = nullptr;
    rondo_options options = RONDO_OPTIONS;
    options.timeout_s = 60;
    const std::string url = "unix://" + me.socket;
    if (rondo_from_store(url.c_str(), me.rank, me.size, &options, &comm) != RONDO_OK) return 1;
    const int code = use_rondo_in_c(comm);
    rondo_comm_destroy(comm);
    if (rondo_from_socket(me.socket.c_str(), me.rank, me.size, nullptr, &comm) != RONDO_OK)
      return 2;
    int number = me.rank;
    rondo_all_reduce(comm, &number, &number, 1, RONDO_I32, RONDO_SUM, nullptr);
    rondo_comm_destroy(comm);
    return number == 3 ? code : 3;
  });
  EXPECT_EQ(codes, (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(exit_code_of([] {
              // Whatever has started this test.
              for (const char* variable :
                   {"RONDO_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK"}) {
                ::unsetenv(variable);
              }
              rondo_comm* comm = nullptr;
              if (rondo_from_environment(nullptr, &comm) != RONDO_OK) return 1;
              const int size = rondo_size(comm);
              rondo_comm_destroy(comm);
              return size == 1 ? 0 : 2;
            }),
            0);
}

}  // namespace
}  // namespace rondo::test
