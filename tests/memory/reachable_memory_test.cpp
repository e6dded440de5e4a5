// rondo::reachable_memory() and its C form, as programs use them.

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <memory_resource>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/memory.h>
#include <rondo/rondo.hpp>

#include "memory/process_arena.hpp"
#include "tests/memory/reachable.hpp"

namespace rondo::test {
namespace {

// The vectors lie elsewhere on each rank, and are made before and after the communicators.
TEST(ReachableMemory, OfAnyOrderGoesDirect) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    std::vector<Floats> padding;
    for (int i = 0; i < me.rank * 7; ++i) {
      padding.emplace_back(static_cast<std::size_t>(1000 * (i + 1)), &reachable_memory());
    }
    Floats before(100'000, static_cast<float>(me.rank), &reachable_memory());
    Communicator comm = join(me);
    Floats after(&reachable_memory());
    for (int i = 0; i < 50'000; ++i) after.push_back(static_cast<float>(i + me.rank));
    if (algorithm_for(comm, before) != Algorithm::direct) return 1;
    if (algorithm_for(comm, after) != Algorithm::direct) return 2;
    comm.all_reduce(before);
    comm.all_reduce(after, ReduceOp::max);
    comm.all_reduce(std::span(after).subspan(100, 20'000), ReduceOp::sum,
                    {.algorithm = Algorithm::direct});
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (before[i] != 3.0F) return 3;
    }
    for (std::size_t i = 0; i < after.size(); ++i) {
      const auto most = static_cast<float>(i + 2);
      if (after[i] != (i >= 100 && i < 20'100 ? 3 * most : most)) return 4;
    }
    std::optional<Communicator> half = comm.split(me.rank / 2);
    Floats small(30'000, 1.0F, &reachable_memory());
    half->all_reduce(small, ReduceOp::sum, {.algorithm = Algorithm::direct});
    return small[29'999] == (me.rank < 2 ? 2.0F : 1.0F) ? 0 : 5;
  });
  EXPECT_EQ(codes, zeros(3));
}

// Two processes of two ranks each, which are threads.
TEST(ReachableMemory, OfGroupsOfSeveralProcessesWithSeveralRanksEach) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    int wrong[2] = {1, 1};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        const int rank = thread * me.size + me.rank;
        Communicator comm = from_socket(me.socket, rank, 2 * me.size);
        Floats data(40'000, static_cast<float>(rank), &reachable_memory());
        comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
        wrong[thread] = data[39'999] == 6.0F && data[0] == 6.0F ? 0 : 1;
      });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong[0] + wrong[1];
  });
  EXPECT_EQ(codes, zeros(2));
}

// Other threads allocate and free while the ranks are in calls.
TEST(ReachableMemory, IsFreedOnAnyThreadDuringCalls) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    std::atomic<bool> done = false;
    std::atomic<Floats*> to_free = nullptr;
    std::thread churns([&] {
      for (std::size_t turn = 0; !done; ++turn) {
        Floats one(1 + turn * 7919 % 300'000, 1.0F, &reachable_memory());
        delete to_free.exchange(nullptr);
      }
    });
    int wrong = 0;
    for (int call = 0; call < 300; ++call) {
      auto data =
          std::make_unique<Floats>(20'000, static_cast<float>(call + me.rank), &reachable_memory());
      comm.all_reduce(*data);
      wrong += data->back() != static_cast<float>(2 * call + 1) ? 1 : 0;
      delete to_free.exchange(data.release());  // the other thread frees it, or this one later
    }
    done = true;
    churns.join();
    delete to_free.load();
    return wrong;
  });
  EXPECT_EQ(codes, zeros(2));
}

// What two forked ranks tell each other.
struct Told {
  std::atomic<pid_t> will_stop = 0;
  std::atomic<bool> ended = false;
};

// Rank 1 is stopped in the middle of a call, in which it writes to the buffer of rank 0, and goes
// on when rank 0 has its error and has put something else there.
TEST(ReachableMemory, OfARankIsItsOwnWhenOneThatWasStoppedGoesOn) {
  void* shared =
      ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  Told& told = *new (shared) Told;
  const std::vector<int> codes = run_forked(2, [&](const ForkedRank& me) {
    CommunicatorOptions options;
    options.timeout = std::chrono::milliseconds(me.rank == 0 ? 1000 : 60'000);
    Communicator comm = join(me, options);
    constexpr std::size_t kCount = std::size_t{32} << 20U;
    Floats data(kCount, 1.0F, &reachable_memory());
    comm.barrier();
    std::thread stops;
    if (me.rank == 1) {
      told.will_stop = ::getpid();
      stops = std::thread([&] {
        const volatile float& first = data[kCount / 2];  // of the half that rank 1 sums up
        while (first == 1.0F) {
        }
        ::raise(SIGSTOP);
      });
    }
    bool failed = false;
    try {
      comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
    } catch (const Error&) {
      failed = true;
    }
    if (me.rank == 1) {  // whose call may end without an error, since rank 0 had done its part
      stops.join();
      told.ended = true;
      return 0;
    }
    std::fill(data.begin(), data.end(), 7.0F);
    ::kill(told.will_stop, SIGCONT);
    while (!told.ended) std::this_thread::yield();
    if (data != Floats(kCount, 7.0F)) return 2;
    return failed ? 0 : 1;
  });
  EXPECT_EQ(codes, zeros(2));
  ::munmap(shared, sizeof(Told));
}

// Objects below 2 KiB are ordinary memory, those that are aligned to a page are not.
TEST(ReachableMemory, AlignsObjectsOfAllSizes) {
  std::pmr::memory_resource& memory = reachable_memory();
  for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
    for (const std::size_t bytes : {1U, 100U, 2047U, 2048U, 5000U, 100'000U}) {
      auto* data = static_cast<std::byte*>(memory.allocate(bytes, alignment));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0U) << bytes;
      const bool reached = bytes >= 2048 || alignment >= detail::page_bytes();
      EXPECT_EQ(detail::process_arena()->holds(data), reached) << bytes << ", " << alignment;
      std::memset(data, 1, bytes);
      memory.deallocate(data, bytes, alignment);
    }
  }
}

// Each of four threads frees what the one before it has allocated.
TEST(ReachableMemory, AMillionObjectsOfFourThreads) {
  constexpr std::size_t kObjects = 250'000;
  constexpr std::size_t kKept = 64;
  struct Object {
    std::size_t* data = nullptr;
    std::size_t elems = 0;
  };
  std::array<std::array<std::atomic<Object*>, kKept>, 4> kept{};
  std::pmr::memory_resource& memory = reachable_memory();
  std::atomic<int> wrong = 0;
  const auto free_object = [&](Object* object) {
    if (object == nullptr) return;
    if (object->data[0] != object->elems || object->data[object->elems - 1] != object->elems)
      ++wrong;
    memory.deallocate(object->data, object->elems * sizeof(std::size_t));
    delete object;
  };
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < 4; ++me) {
    threads.emplace_back([&, me] {
      for (std::size_t i = 0; i < kObjects; ++i) {
        const std::size_t elems = i % 1000 == 0 ? 100'000 : 1 + i * 7919 % 500;
        auto* data = static_cast<std::size_t*>(memory.allocate(elems * sizeof(std::size_t)));
        data[0] = data[elems - 1] = elems;
        free_object(kept[me][i % kKept].exchange(new Object{data, elems}));
        free_object(kept[(me + 3) % 4][i % kKept].exchange(nullptr));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& of_thread : kept) {
    for (auto& object : of_thread) free_object(object.exchange(nullptr));
  }
  EXPECT_EQ(wrong, 0);
}

// The flags of the mapping that holds an address: "dd" is in no core dump.
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool is_inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream words(line);
    if (words >> std::hex >> begin >> dash >> end && dash == '-') {
      is_inside = begin <= wanted && wanted < end;
    } else if (is_inside && line.rfind("VmFlags:", 0) == 0) {
      return line;
    }
  }
  return {};
}

TEST(ReachableMemory, IsLeftOutOfCoreDumps) {
  const Floats data(100'000, 1.0F, &reachable_memory());
  EXPECT_NE(mapping_flags(data.data()).find(" dd"), std::string::npos)
      << mapping_flags(data.data());
  const std::vector<float> ordinary(100'000);
  EXPECT_EQ(mapping_flags(ordinary.data()).find(" dd"), std::string::npos);
}

TEST(ReachableMemory, ThatDoesNotExistIsBadAlloc) {
  EXPECT_THROW(static_cast<void>(reachable_memory().allocate(std::size_t{1} << 50U)),
               std::bad_alloc);
  EXPECT_TRUE(reachable_memory().is_equal(reachable_memory()));
  EXPECT_FALSE(reachable_memory().is_equal(*std::pmr::new_delete_resource()));
}

TEST(ReachableMemory, AForkedChildSharesItsParentsAndHasItsOwn) {
  auto* shared = static_cast<int*>(reachable_memory().allocate(4000));
  auto* large = static_cast<std::byte*>(reachable_memory().allocate(1'000'000));
  *shared = 1;
  EXPECT_EQ(exit_code_of([&] {
              auto* own = static_cast<int*>(reachable_memory().allocate(4000));
              if (detail::process_arena()->holds(shared)) return 1;
              if (!detail::process_arena()->holds(own)) return 2;
              *own = 7;
              *shared = 2;
              reachable_memory().deallocate(own, 4000);
              reachable_memory().deallocate(shared, 4000);  // stays allocated
              reachable_memory().deallocate(large, 1'000'000);
              return 0;
            }),
            0);
  EXPECT_EQ(*shared, 2);
  auto* next = static_cast<std::byte*>(reachable_memory().allocate(1'000'000));
  EXPECT_NE(next, large);
  reachable_memory().deallocate(next, 1'000'000);
  reachable_memory().deallocate(large, 1'000'000);
  reachable_memory().deallocate(shared, 4000);
}

// A child that calls exit() runs the destructors of all libraries.
TEST(ReachableMemory, IsWholeAfterAForkedChildHasExited) {
  std::vector<Floats> all;
  const auto check = [&] {
    for (std::size_t i = 0; i < 300; ++i) all.emplace_back(i * 13, 1.0F, &reachable_memory());
    for (std::size_t i = 0; i < all.size(); i += 2) all[i] = Floats(&reachable_memory());
    for (std::size_t i = 1; i < all.size(); i += 2) {
      for (const float element : all[i]) {
        if (element != 1.0F) return false;
      }
    }
    return true;
  };
  for (const bool hide : {false, true}) {
    hide_reachable_memory_from_children(hide);
    EXPECT_TRUE(check());
    EXPECT_EQ(exit_code_of([&] {
                all.clear();
                Floats own(5000, 1.0F, &reachable_memory());
                std::exit(0);
                return 1;
              }),
              0);
    EXPECT_TRUE(check());
  }
  hide_reachable_memory_from_children(false);
}

TEST(ReachableMemory, OfAParentIsReallocatedByACopy) {
  auto* data = static_cast<char*>(::rondo_malloc(100'000));
  std::strcpy(data, "all bytes");
  EXPECT_EQ(exit_code_of([&] {
              auto* more = static_cast<char*>(::rondo_realloc(data, 1'000'000));
              if (!detail::process_arena()->holds(more)) return 1;
              return std::strcmp(more, "all bytes") == 0 && more != data ? 0 : 2;
            }),
            0);
  EXPECT_EQ(std::strcmp(data, "all bytes"), 0);
  ::rondo_free(data);
}

// Whether this process holds the file of another arena than this.
bool has_arena_file_but(const detail::Arena& own) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::string file = std::filesystem::read_symlink(entry.path(), gone).string();
    const bool is_own = entry.path().filename() == std::to_string(own.file().get());
    if (!is_own && file.find("memfd:rondo") != std::string::npos) return true;
  }
  return false;
}

TEST(ReachableMemory, CanBeHiddenFromChildren) {
  auto* shared = static_cast<int*>(reachable_memory().allocate(4000));
  *shared = 1;
  const auto read = [&] {
    ::signal(SIGSEGV, SIG_DFL);
    return *static_cast<volatile int*>(shared) == 1 ? 0 : 1;
  };
  EXPECT_EQ(exit_code_of(read), 0);
  hide_reachable_memory_from_children(true);
#ifndef RONDO_TEST_SANITIZER  // which turns the signal into a report
  EXPECT_EQ(exit_code_of(read), 1000 + SIGSEGV);
#endif
  EXPECT_EQ(exit_code_of([&] {
              auto* own = static_cast<int*>(reachable_memory().allocate(4000));
              *own = 5;
              reachable_memory().deallocate(shared, 4000);
              if (*own != 5 || has_arena_file_but(*detail::process_arena())) return 1;
              // Of another thread, whose heap might lie where its parent's arena was.
              int wrong = 0;
              std::thread([&] {
                for (int i = 0; i < 1000; ++i) {
                  void* small = ::rondo_realloc(::rondo_malloc(100), 200);
                  wrong += small == nullptr ? 1 : 0;
                  ::rondo_free(small);
                }
              }).join();
              return wrong == 0 ? 0 : 2;
            }),
            0);
  hide_reachable_memory_from_children(false);
  EXPECT_EQ(exit_code_of(read), 0);
  reachable_memory().deallocate(shared, 4000);
}

// How many ranges of addresses of this process are of arenas or of the segment of the host.
int mapped_ranges() {
  std::ifstream maps("/proc/self/maps");
  int ranges = 0;
  for (std::string line; std::getline(maps, line);) {
    ranges += line.find("memfd:rondo") != std::string::npos ? 1 : 0;
  }
  return ranges;
}

// What is not hidden: memory of other processes, and what was adopted.
TEST(ReachableMemory, OfOthersAndAdoptedIsSeenByChildren) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    Communicator comm = join(me);
    Floats data(30'000, static_cast<float>(me.rank + 1), &reachable_memory());
    comm.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
    hide_reachable_memory_from_children(true);
    std::vector<float> own(30'000, 5.0F);
    const AdoptedMemory adopted = adopt(std::span(own));
    const int in_child = exit_code_of([&] {
      if (own != std::vector<float>(30'000, 5.0F)) return 50;
      return mapped_ranges();
    });
    return mapped_ranges() - in_child == 1 ? 0 : in_child;  // its parent's arena is not there
  });
  EXPECT_EQ(codes, zeros(2));
}

// In in_c_test.c, which a C compiler reads.
extern "C" int use_reachable_memory_in_c(void);

TEST(ReachableMemoryInC, WorksInAProgramInC) { EXPECT_EQ(use_reachable_memory_in_c(), 0); }

TEST(ReachableMemoryInC, IsMallocFreeAndRealloc) {
  EXPECT_EQ(exit_code_of([] {
              ::rondo_free(nullptr);
              auto* data = static_cast<char*>(::rondo_malloc(10));
              if (reinterpret_cast<std::uintptr_t>(data) % alignof(std::max_align_t) != 0) return 1;
              std::strcpy(data, "all bytes");
              for (const std::size_t bytes : {100U, 100'000U, 10'000'000U, 50'000U, 10U}) {
                data = static_cast<char*>(::rondo_realloc(data, bytes));
                if (detail::process_arena()->holds(data) != (bytes >= 2048)) return 2;
                if (std::strcmp(data, "all bytes") != 0) return 3;
                data[bytes - 1] = bytes == 10 ? '\0' : 'x';
              }
              errno = 0;
              if (::rondo_realloc(data, std::size_t{1} << 50U) != nullptr || errno != ENOMEM)
                return 4;
              if (std::strcmp(data, "all bytes") != 0) return 5;
              if (::rondo_realloc(data, 0) != nullptr) return 6;
              auto* fresh = static_cast<char*>(::rondo_realloc(nullptr, 20));
              if (fresh == nullptr) return 7;
              ::rondo_free(fresh);
              return ::rondo_malloc(std::size_t{1} << 50U) == nullptr && errno == ENOMEM ? 0 : 8;
            }),
            0);
}

}  // namespace
}  // namespace rondo::test
