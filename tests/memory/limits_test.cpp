// What reachable memory is where the system gives little or none.

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <new>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/memory.h>
#include <rondo/rondo.hpp>

#include "memory/process_arena.hpp"
#include "tests/memory/reachable.hpp"
#include "tests/support/memory_group.hpp"

namespace rondo::test {
namespace {

TEST(ReachableMemory, TakesFewOfTheAddressesWhereTheyAreLimited) {
#ifdef RONDO_TEST_SANITIZER
  GTEST_SKIP() << "sanitizers need more addresses than that";
#endif
  EXPECT_EQ(exit_code_of([] {
              std::size_t pages = 0;  // that this process has already
              std::ifstream("/proc/self/statm") >> pages;
              const rlim_t most = pages * detail::page_bytes() + (rlim_t{8} << 30U);
              const rlimit limit{most, most};
              if (::setrlimit(RLIMIT_AS, &limit) != 0) return 1;
              Floats data(1'000'000, 1.0F, &reachable_memory());
              const detail::Arena* arena = detail::process_arena();
              return arena != nullptr && arena->bytes() <= most / 8 ? 0 : 2;
            }),
            0);
}

TEST(ReachableMemory, IsAsLargeAsTheEnvironmentSays) {
  const auto with = [](const char* bytes, const auto& use) {
    return exit_code_of([&] {
      ::setenv("RONDO_ARENA_BYTES", bytes, 1);
      return use();
    });
  };
  EXPECT_EQ(with("67108864",
                 [] {
                   Floats data(1'000'000, 1.0F, &reachable_memory());
                   if (detail::process_arena()->bytes() != std::size_t{64} << 20U) return 1;
                   try {
                     const Floats more(16'000'000, 1.0F, &reachable_memory());
                     return 2;
                   } catch (const std::bad_alloc&) {
                     return data.back() == 1.0F ? 0 : 3;
                   }
                 }),
            0);
  EXPECT_EQ(with("1000",
                 [] {
                   const Floats data(1'000'000, 1.0F, &reachable_memory());
                   return detail::process_arena()->bytes() == std::size_t{16} << 20U ? 0 : 1;
                 }),
            0);
  EXPECT_EQ(with("much",
                 [] {
                   errno = 0;
                   if (::rondo_malloc(100'000) != nullptr || errno != ENOMEM) return 1;
                   try {
                     static_cast<void>(reachable_memory().allocate(100'000));
                     return 2;
                   } catch (const UsageError& error) {
                     const bool names_it =
                         std::string(error.what()).find("RONDO_ARENA_BYTES is 'much'") !=
                         std::string::npos;
                     return names_it ? 0 : 3;
                   }
                 }),
            0);
}

TEST(ReachableMemory, IsFourTimesTheMachinesMemoryLarge) {
#ifdef RONDO_TEST_SANITIZER
  GTEST_SKIP() << "sanitizers may need the addresses";
#endif
  for (const auto resource : {RLIMIT_AS, RLIMIT_FSIZE}) {
    rlimit limit{};
    ::getrlimit(resource, &limit);
    if (limit.rlim_cur != RLIM_INFINITY) GTEST_SKIP() << "needs no limit of addresses and files";
  }
  EXPECT_EQ(exit_code_of([] {
              ::unsetenv("RONDO_ARENA_BYTES");
              const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
              const std::size_t memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page;
              const std::size_t most =
                  (std::size_t{1} << 46U) / std::max(1U, std::thread::hardware_concurrency());
              constexpr std::size_t kHugePage = std::size_t{2} << 20U;  // of which it is a multiple
              const std::size_t bytes = detail::process_arena()->bytes();
              return bytes - std::min(4 * memory, most) < kHugePage ? 0 : 1;
            }),
            0);
}

// mlockall() reserves what is mapped later, too.
TEST(ReachableMemory, IsNotAllReservedInAProcessThatLocksItsMemory) {
  const int code = exit_code_of([] {
    if (::mlockall(MCL_FUTURE) != 0) return 77;
    Floats data(10'000, 1.0F, &reachable_memory());
    const detail::Arena* arena = detail::process_arena();
    struct stat facts{};
    ::fstat(arena->file().get(), &facts);
    return facts.st_blocks * 512 <= (4 << 20) ? 0 : 1;
  });
  if (code == 77) GTEST_SKIP() << "this user may not lock memory";
  EXPECT_EQ(code, 0);
}

// Calls then go another way, on all ranks.
TEST(ReachableMemory, IsOrdinaryWhereTheSystemGivesNone) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    std::string said;
    set_log_hook([&](LogLevel, std::string_view text) { said += text; });
    rlimit usual{};
    ::getrlimit(RLIMIT_FSIZE, &usual);
    if (me.rank == 1) {
      const rlimit little{1 << 20, usual.rlim_max};
      ::setrlimit(RLIMIT_FSIZE, &little);
    }
    Floats data(50'000, static_cast<float>(me.rank + 1), &reachable_memory());
    ::setrlimit(RLIMIT_FSIZE, &usual);
    if (said.empty() != (me.rank == 0)) return 1;
    if (me.rank == 1 && said.find("ordinary memory") == std::string::npos) return 2;
    Communicator comm = join(me);
    if (algorithm_for(comm, data) == Algorithm::direct) return 3;
    comm.all_reduce(data);
    data.resize(100'000);
    return data[49'999] == 3.0F ? 0 : 4;
  });
  EXPECT_EQ(codes, zeros(2));
}

// As a sandbox that allows neither files without names nor more.
bool forbid(unsigned call) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof(rules) / sizeof(rules[0]), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool forbid_memfd_create() { return forbid(SYS_memfd_create); }

TEST(ReachableMemory, IsOrdinaryInASandboxThatForbidsItsFile) {
  EXPECT_EQ(exit_code_of([] {
              std::string said;
              set_log_hook([&](LogLevel, std::string_view text) { said += text; });
              if (!forbid_memfd_create()) return 1;
              Floats data(50'000, 2.0F, &reachable_memory());
              if (said.find("ordinary memory") == std::string::npos) return 2;
              said.clear();
              Floats more(100, 2.0F, &reachable_memory());
              hide_reachable_memory_from_children(true);  // there is none to hide
              if (!said.empty()) return 3;                // said once
              int wrong = 0;
              std::vector<Communicator> alone = local_group(1);
              alone[0].all_reduce(data);
              for (const float element : data) wrong += element == 2.0F ? 0 : 1;
              return wrong == 0 ? 0 : 4;
            }),
            0);
}

TEST(ReachableMemory, ThatTheSystemDoesNotHideIsAnError) {
  EXPECT_EQ(exit_code_of([] {
              const Floats data(50'000, 2.0F, &reachable_memory());
              if (!forbid(SYS_madvise)) return 1;
              try {
                hide_reachable_memory_from_children(true);
                return 2;
              } catch (const TransportError& error) {
                return std::string(error.what()).find("madvise") != std::string::npos ? 0 : 3;
              }
            }),
            0);
}

// One rank may make no such file, so all go another way. What that rank adopts stays where it is.
TEST(ReachableMemory, IsOrdinaryForRanksInASandbox) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    set_log_hook([](LogLevel, std::string_view) {});
    // Rank 0 makes the segment of the host.
    if (me.rank == 1 && !forbid_memfd_create()) return 1;
    Communicator comm = join(me);
    Floats data(50'000, static_cast<float>(me.rank + 1), &reachable_memory());
    std::vector<float> own(50'000, static_cast<float>(me.rank + 1));
    const AdoptedMemory adopted = adopt(std::span(own));
    if (algorithm_for(comm, data) == Algorithm::direct) return 3;
    comm.all_reduce(data);
    comm.all_reduce(own);
    int wrong = 0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      wrong += data[i] == 3.0F && own[i] == 3.0F ? 0 : 1;
    }
    return wrong == 0 ? 0 : 2;
  });
  EXPECT_EQ(codes, zeros(2));
}

// Of what a control group allows, all can be allocated, and nobody is killed.
TEST(ReachableMemory, EndsWithBadAllocInAControlGroup) {
#ifdef RONDO_TEST_SANITIZER
  GTEST_SKIP() << "sanitizers take memory of their own from what the control group leaves";
#endif
  const MemoryGroup group;
  if (!group.made()) GTEST_SKIP() << "needs to make a control group of version 1 for memory";
  constexpr int kRefused = 77;
  constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
  const int code = exit_code_of([&] {
    if (!group.enter()) return kRefused;
    std::vector<float> large(8 * kMiB, 2.0F);
    std::vector<Floats> all;
    all.reserve(100);
    if (!group.leave_room_for(160 * kMiB)) return kRefused;
    const auto fill = [&] {
      try {
        for (;;) all.emplace_back(kMiB, 1.0F, &reachable_memory());
      } catch (const std::bad_alloc&) {
      }
    };
    fill();
    if (all.size() < 30 || all.size() > 40) return 1;
    AdoptedMemory adopted;
    try {
      adopted = adopt(std::span(large));
      return 2;
    } catch (const TransportError&) {
    }
    all.resize(all.size() - 10);
    adopted = adopt(std::span(large));
    fill();
    std::string said;
    set_log_hook([&](LogLevel, std::string_view text) { said += text; });
    adopted = AdoptedMemory();
    if (said.find("too little memory") == std::string::npos) return 3;
    // Its pages are nobody else's.
    all.clear();
    fill();
    for (const float element : large) {
      if (element != 2.0F) return 4;
    }
    return 0;
  });
  if (code == kRefused) GTEST_SKIP() << "may not use a control group for memory";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace rondo::test
