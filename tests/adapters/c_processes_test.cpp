// The C interface between processes; in_c.c is a program in C.

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>
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

TEST(CInterfaceOfProcesses, LogsToAHook) {
  std::string said;
  const rondo_log_hook hook = [](void* user, rondo_log_level level, const char* message) {
    static_cast<std::string*>(user)->append(level == RONDO_LOG_INFO ? "info: " : "warning: ");
    static_cast<std::string*>(user)->append(message);
  };
  EXPECT_EQ(RONDO_OK, rondo_set_log_hook(hook, &said, RONDO_LOG_INFO));
  // Memory that is freed too early.
  constexpr std::size_t kBytes = 1 << 16;
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  rondo_adopted* adopted = nullptr;
  EXPECT_EQ(RONDO_OK, rondo_adopt(memory, kBytes, &adopted));
  ::munmap(memory, kBytes);
  rondo_adopted_destroy(adopted);
  EXPECT_EQ(RONDO_OK, rondo_set_log_hook(nullptr, nullptr, RONDO_LOG_INFO));
  EXPECT_EQ(said.find("warning: memory was freed before"), 0U) << said;
  EXPECT_EQ(rondo_set_log_hook(hook, nullptr, static_cast<rondo_log_level>(2)), RONDO_USAGE_ERROR);
}

TEST(CInterfaceOfProcesses, AdoptsMemory) {
  std::vector<std::int32_t> data(100'000);
  std::iota(data.begin(), data.end(), 0);
  const std::vector<std::int32_t> copy = data;
  rondo_adopted* adopted = nullptr;
  EXPECT_EQ(RONDO_OK, rondo_adopt(data.data(), data.size() * sizeof(std::int32_t), &adopted));
  EXPECT_EQ(data, copy);
  rondo_adopted_destroy(adopted);
  EXPECT_EQ(data, copy);
  static int of_a_file = 1;
  EXPECT_EQ(rondo_adopt(&of_a_file, sizeof(of_a_file), &adopted), RONDO_USAGE_ERROR);
  EXPECT_EQ(adopted, nullptr);
  rondo_adopted_destroy(nullptr);
  auto* zeros = static_cast<int*>(rondo_calloc(10'000, sizeof(int)));
  ASSERT_NE(zeros, nullptr);
  EXPECT_EQ(std::count(zeros, zeros + 10'000, 0), 10'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(zeros) % 4096, 0U);
  rondo_free(zeros);
  EXPECT_EQ(rondo_calloc(SIZE_MAX, 2), nullptr);
  EXPECT_EQ(RONDO_OK, rondo_hide_reachable_memory(1));
  EXPECT_EQ(RONDO_OK, rondo_hide_reachable_memory(0));
}

}  // namespace
}  // namespace rondo::test
