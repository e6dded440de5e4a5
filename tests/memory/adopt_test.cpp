// rondo::adopt(), as programs use it.

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "memory/process_arena.hpp"
#include "tests/memory/reachable.hpp"

namespace rondo::test {
namespace {

TEST(AdoptedMemory, GoesDirectAtTheSamePlace) {
  const std::vector<int> codes = run_forked(3, [](const ForkedRank& me) {
    Communicator comm = join(me);
    // In large pieces of the heap, and in small ones that share their pages.
    for (const std::size_t count : {100'000U, 3'000'000U, 5000U}) {
      std::vector<float> data(count);
      std::vector<float> beside(100, 7.0F);
      for (std::size_t i = 0; i < count; ++i) data[i] = static_cast<float>(i % 1000) + 1;
      {
        const AdoptedMemory adopted = adopt(std::span(data));
        if (data[count - 1] != static_cast<float>((count - 1) % 1000) + 1) return 1;
        if (algorithm_for(comm, data) != Algorithm::direct) return 2;
        Communicator later = comm.duplicate();
        later.all_reduce(data, ReduceOp::sum, {.algorithm = Algorithm::direct});
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (data[i] != 3 * (static_cast<float>(i % 1000) + 1)) return 3;
      }
      if (beside != std::vector<float>(100, 7.0F)) return 4;
      if (algorithm_for(comm, data) == Algorithm::direct) return 5;
      comm.all_reduce(data);
      data.resize(count + 10'000'000);  // may be moved, or merged with what is beside
      if (data[count - 1] != 9 * (static_cast<float>((count - 1) % 1000) + 1)) return 6;
    }
    return 0;
  });
  EXPECT_EQ(codes, zeros(3));
}

// Pages of ordinary memory, which no other object shares.
template <class T>
class Pages {
 public:
  explicit Pages(std::size_t count)
      : elements_(static_cast<T*>(::mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)),
                  count) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(elements_.data(), elements_.size_bytes()); }
  [[nodiscard]] std::span<T> span() const { return elements_; }

 private:
  std::span<T> elements_;
};

bool is_reachable(std::span<const int> data) {
  return detail::process_arena()->offset_of(data.data(), data.size_bytes()).has_value();
}

TEST(AdoptedMemory, IsMovedBackByAnyThread) {
  std::vector<int> data(100'000);
  std::iota(data.begin(), data.end(), 1);
  const std::vector<int> copy = data;
  AdoptedMemory owner;
  {
    AdoptedMemory first = adopt(std::span(data));
    owner = std::move(first);
  }
  EXPECT_TRUE(is_reachable(data)) << "its owner has moved";
  EXPECT_EQ(data, copy);
  std::thread([&] { owner = AdoptedMemory(); }).join();
  EXPECT_FALSE(is_reachable(data));
  EXPECT_EQ(data, copy);
}

// Two processes of two ranks each, which are threads. While one adopts its pages or gives them
// back, others are in a call.
TEST(AdoptedMemory, OfSeveralRanksOfAProcessMovesDuringCalls) {
  const std::vector<int> codes = run_forked(2, [](const ForkedRank& me) {
    constexpr std::size_t kCount = 16'384;
    std::array<int, 2> wrong{};
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 2; ++thread) {
      threads.emplace_back([&, thread] {
        const int rank = thread * me.size + me.rank;
        Communicator comm = from_socket(me.socket, rank, 2 * me.size);
        const Pages<int> pages(kCount);
        for (int call = 0; call < 100; ++call) {
          for (std::size_t i = 0; i < kCount; ++i) {
            pages.span()[i] = static_cast<int>(i) * (rank + 1) + call;
          }
          AdoptedMemory adopted;
          // If all ranks do, the call goes direct.
          if (call % 5 < 4 || rank < 3) adopted = adopt(pages.span());
          comm.all_reduce(pages.span());
          adopted = AdoptedMemory();
          for (std::size_t i = 0; i < kCount; ++i) {
            const int sum = static_cast<int>(i) * 10 + 4 * call;
            wrong[static_cast<std::size_t>(thread)] += pages.span()[i] == sum ? 0 : 1;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return wrong[0] + wrong[1] == 0 ? 0 : 1;
  });
  EXPECT_EQ(codes, zeros(2));
}

TEST(AdoptedMemory, IsLeftWhereItIsIfTheArenaIsTooSmall) {
  EXPECT_EQ(exit_code_of([] {
              ::setenv("RONDO_ARENA_BYTES", "16777216", 1);
              std::vector<int> data(8'000'000, 3);
              try {
                static_cast<void>(adopt(std::span(data)));
                return 1;
              } catch (const TransportError&) {
              }
              return data == std::vector<int>(8'000'000, 3) && !is_reachable(data) ? 0 : 2;
            }),
            0);
}

// What is said of memory that cannot be adopted.
std::string refusal(void* memory, std::size_t bytes) {
  try {
    static_cast<void>(adopt(memory, bytes));
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(AdoptedMemory, IsRefusedWhereItIsNotOrdinary) {
  const std::size_t page = detail::page_bytes();
  const auto map = [&](int access, int flags) {
    return ::mmap(nullptr, 2 * page, access, flags | MAP_ANONYMOUS, -1, 0);
  };
  // Sanitizers put variables elsewhere.
  const auto of_stack = [] { return refusal(__builtin_frame_address(0), 8); };
  EXPECT_NE(of_stack().find("stack"), std::string::npos);
  std::thread([&] { EXPECT_NE(of_stack().find("stack"), std::string::npos); }).join();
  EXPECT_NE(refusal(map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE), page).find("executed"),
            std::string::npos);
  EXPECT_NE(refusal(map(PROT_READ, MAP_PRIVATE), page).find("written"), std::string::npos);
  EXPECT_NE(refusal(map(PROT_READ | PROT_WRITE, MAP_SHARED), page).find("shared"),
            std::string::npos);
  static int of_a_file = 1;
  EXPECT_NE(refusal(&of_a_file, sizeof(of_a_file)), "");
  auto* whole = static_cast<std::byte*>(map(PROT_READ | PROT_WRITE, MAP_PRIVATE));
  ::munmap(whole + page, page);
  EXPECT_NE(refusal(whole, 2 * page), "");
  EXPECT_NE(refusal(nullptr, 10), "");
  const AdoptedMemory adopted = adopt(whole, 10);
  EXPECT_NE(refusal(whole + 100, 10).find("shared"), std::string::npos) << "adopted already";
  const AdoptedMemory nothing = adopt(std::span<float>());
  Floats reachable(10, 1.0F, &reachable_memory());
  const AdoptedMemory already = adopt(std::span(reachable));
  EXPECT_EQ(reachable[9], 1.0F);
}

// Many small objects lie on the pages at both ends, of which a child frees its copies and makes
// others, while the memory is adopted and when its parent has ended that.
TEST(AdoptedMemory, ThatAForkedChildInheritsChangesNothingForEither) {
  constexpr std::size_t kBeside = 2000;
  const auto make = [] {
    std::vector<std::unique_ptr<std::array<int, 10>>> objects;
    for (std::size_t i = 0; i < kBeside; ++i) {
      objects.push_back(std::make_unique<std::array<int, 10>>());
      objects.back()->fill(static_cast<int>(i));
    }
    return objects;
  };
  const auto are_whole = [](const auto& objects) {
    for (std::size_t i = 0; i < objects.size(); ++i) {
      for (const int one : *objects[i]) {
        if (one != static_cast<int>(i)) return false;
      }
    }
    return true;
  };
  auto before = make();
  std::vector<int> data(10'000, 1);
  auto after = make();
  auto adopted = std::make_unique<AdoptedMemory>(adopt(std::span(data)));
  int child_has_written[2];
  int parent_has_ended_it[2];
  ASSERT_EQ(::pipe(child_has_written), 0);
  ASSERT_EQ(::pipe(parent_has_ended_it), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    int code = are_whole(before) && are_whole(after) && data[5000] == 1 ? 0 : 1;
    data[5000] = 2;
    before.clear();
    after = make();
    before = make();
    if (::write(child_has_written[1], "x", 1) != 1) code = 5;
    char any = 0;
    if (::read(parent_has_ended_it[0], &any, 1) != 1) code = 2;
    if (*static_cast<volatile int*>(&data[3000]) != 7) code = 6;  // its parent has written it
    if (::write(child_has_written[1], "x", 1) != 1) code = 5;
    if (::read(parent_has_ended_it[0], &any, 1) != 1) code = 2;
    adopted.reset();
    if (data[5000] != 2 || !are_whole(before) || !are_whole(after)) code = 3;
    data = std::vector<int>(20'000, 5);
    before.clear();
    if (!are_whole(make()) || !are_whole(after)) code = 4;
    ::_exit(code);
  }
  char any = 0;
  ASSERT_EQ(::read(child_has_written[0], &any, 1), 1);
  EXPECT_EQ(data[5000], 1);
  data[3000] = 7;
  ASSERT_EQ(::write(parent_has_ended_it[1], "x", 1), 1);
  ASSERT_EQ(::read(child_has_written[0], &any, 1), 1);
  data[3000] = 1;
  adopted.reset();
  const Floats other(100'000, 1.0F, &reachable_memory());
  ASSERT_EQ(::write(parent_has_ended_it[1], "x", 1), 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << WEXITSTATUS(status);
  EXPECT_TRUE(are_whole(before));
  EXPECT_TRUE(are_whole(after));
  EXPECT_EQ(data, std::vector<int>(10'000, 1));
  EXPECT_EQ(other, Floats(100'000, 1.0F));
}

TEST(AdoptedMemory, ThatIsFreedTooEarlyIsNotReachedAnyMore) {
  const std::size_t bytes = 4 * detail::page_bytes();
  const auto map = [&](void* where, int how) {
    return ::mmap(where, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | how, -1, 0);
  };
  std::string said;
  set_log_hook([&](LogLevel, std::string_view text) { said += text; });
  auto* memory = static_cast<std::byte*>(map(nullptr, 0));
  std::optional<std::uint64_t> adopted_at;
  {
    const AdoptedMemory adopted = adopt(memory, bytes);
    adopted_at = detail::process_arena()->offset_of(memory, bytes);
    ASSERT_TRUE(adopted_at.has_value());
    ::munmap(memory, bytes);
    ASSERT_EQ(map(memory, MAP_FIXED), memory);
    memory[0] = std::byte{5};
  }
  set_log_hook(nullptr);
  EXPECT_NE(said.find("was freed before"), std::string::npos) << said;
  // Nobody else gets the pages that another process may still write to.
  Floats other(bytes / sizeof(float), 1.0F, &reachable_memory());
  const auto offset = detail::process_arena()->offset_of(other.data(), bytes);
  EXPECT_NE(offset, adopted_at);
  EXPECT_EQ(memory[0], std::byte{5});
  EXPECT_FALSE(detail::process_arena()->offset_of(memory, 1).has_value());
  ::munmap(memory, bytes);
}

// As a process that was stopped in a call, and goes on after that.
TEST(AdoptedMemory, CanBeMadePrivate) {
  std::vector<int> data(100'000, 1);
  detail::Arena& arena = *detail::process_arena();
  std::byte* peer = nullptr;
  {
    const AdoptedMemory adopted = adopt(std::span(data));
    const auto offset = arena.offset_of(data.data(), data.size() * sizeof(int));
    ASSERT_TRUE(offset.has_value());
    peer = arena.data() + *offset;
    EXPECT_TRUE(arena.make_private(reinterpret_cast<const std::byte*>(data.data()),
                                   data.size() * sizeof(int)));
    EXPECT_FALSE(arena.offset_of(data.data(), sizeof(int)).has_value());
    std::memset(peer, 9, data.size() * sizeof(int));
    EXPECT_EQ(data, std::vector<int>(100'000, 1));
  }
  std::memset(peer, 8, data.size() * sizeof(int));
  EXPECT_EQ(data, std::vector<int>(100'000, 1));
}

}  // namespace
}  // namespace rondo::test
