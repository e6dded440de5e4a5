// The allocator of pages that other processes can map.

#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "bench/exact_values.hpp"
#include "memory/arena.hpp"
#include "memory/host_turn.hpp"
#include "memory/process_arena.hpp"
#include "tests/memory/new_arena.hpp"

namespace rondo::detail {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20U;

std::size_t reserved_bytes(const Arena& arena) {
  struct stat facts{};
  EXPECT_EQ(::fstat(arena.file().get(), &facts), 0);
  return static_cast<std::size_t>(facts.st_blocks) * 512;
}

TEST(Arena, AlignsAsAsked) {
  Arena& arena = test::new_arena(256 * kMiB);
  for (const std::size_t bytes : {0U, 1U, 7U, 8U, 24U, 100U, 1000U, 5000U, 40'000U, 3'000'000U}) {
    for (std::size_t alignment = 1; alignment <= 2 * kMiB; alignment *= 2) {
      std::byte* data = arena.allocate(bytes, alignment);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0U) << bytes;
      EXPECT_TRUE(arena.holds(data));
      EXPECT_GE(arena.usable_bytes(data), bytes);
      arena.free(data);
    }
  }
}

// A number of bytes from 64 B to 1 GiB; few of the largest, and of those some of exactly 1 GiB.
std::size_t draw_bytes(std::uint64_t dice) {
  const std::uint64_t rare = dice >> 40U;
  if (rare % 65536 == 1) return std::size_t{1} << 30U;
  const std::uint64_t most = rare % 16384 == 0 ? 24 : rare % 512 == 0 ? 18 : 12;
  const std::uint64_t power = 6 + (dice >> 8U) % (most + 1);
  return (std::size_t{1} << power) + (dice >> 20U) % (std::size_t{1} << power);
}

struct Piece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  std::byte mark{};

  // The first and the last bytes of each page.
  template <class Visit>
  void visit(Visit&& visit) const {
    for (std::size_t i = 0; i < bytes; i += 4096) visit(data[i]);
    for (std::size_t i = 0; i < std::min<std::size_t>(bytes, 8); ++i) visit(data[bytes - 1 - i]);
  }
  void write() const {
    visit([&](std::byte& one) { one = mark; });
  }
  [[nodiscard]] bool is_whole() const {
    bool whole = true;
    visit([&](const std::byte& one) { whole = whole && one == mark; });
    return whole;
  }
};

// Four threads allocate a million pieces and free those of each other. No piece shares a byte with
// another.
TEST(Arena, AMillionPiecesOfFourThreads) {
  constexpr int kThreads = 4;
#ifdef RONDO_TEST_SANITIZER
  constexpr std::uint64_t kTurns = 10'000;
#else
  constexpr std::uint64_t kTurns = 250'000;
#endif
  constexpr std::size_t kMostPieces = 1000;
  constexpr std::size_t kMostBytes = 2048 * kMiB;
  Arena& arena = test::new_arena(65'536 * kMiB);  // never full of what four threads hold
  std::mutex mutex;
  std::vector<Piece> pieces;
  std::size_t bytes = 0;
  std::atomic<std::uint64_t> wrong = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<std::uint64_t> full_refusals = 0;
  const auto free_one = [&](std::uint64_t dice) {
    Piece piece;
    {
      const std::lock_guard lock(mutex);
      if (pieces.empty()) return;
      std::swap(pieces[dice % pieces.size()], pieces.back());
      piece = pieces.back();
      pieces.pop_back();
      bytes -= piece.bytes;
    }
    if (!piece.is_whole()) ++wrong;
    arena.free(piece.data);
  };
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::uint64_t turn = 0; turn < kTurns; ++turn) {
        const std::uint64_t dice = exact::mix(thread * kTurns + turn);
        Piece piece{nullptr, draw_bytes(dice), static_cast<std::byte>(dice)};
        try {
          piece.data = arena.allocate(piece.bytes, 16);
        } catch (const TransportError& error) {
          ++refused;
          // This machine has too little memory; the arena has addresses left.
          const std::string text = error.what();
          if (text.find("are left") == std::string::npos) ++full_refusals;
          free_one(dice);
          continue;
        }
        piece.write();
        bool full = false;
        {
          const std::lock_guard lock(mutex);
          pieces.push_back(piece);
          bytes += piece.bytes;
          full = pieces.size() > kMostPieces || bytes > kMostBytes;
        }
        if (full || dice % 3 == 0) free_one(dice / 3);
        if (full) free_one(dice / 5);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(full_refusals, 0U);
  EXPECT_LT(refused, kTurns / 1000);
  while (!pieces.empty()) free_one(0);
  EXPECT_EQ(wrong, 0U);
  EXPECT_LE(reserved_bytes(arena), 64 * kMiB);
}

TEST(Arena, KeepsALittleOfWhatIsFreedAndGivesTheRestBack) {
  Arena& arena = test::new_arena(1024 * kMiB);
  std::byte* large = arena.allocate(200 * kMiB, 1);
  std::byte* small = arena.allocate(30 * kMiB, 1);
  EXPECT_GE(reserved_bytes(arena), 230 * kMiB) << "reserved before they are used";
  std::memset(large, 1, 200 * kMiB);
  arena.free(large);
  EXPECT_EQ(reserved_bytes(arena), 94 * kMiB);
  arena.free(small);
  EXPECT_EQ(reserved_bytes(arena), 64 * kMiB) << "kept for the next allocation";
  EXPECT_EQ(arena.allocate(34 * kMiB, 1), arena.data());
  EXPECT_EQ(reserved_bytes(arena), 64 * kMiB);
}

// As a trainer's steps do with gradients, beside a model that stays.
TEST(Arena, KeepsAsMuchOfWhatIsFreedAsIsAllocatedStill) {
  Arena& arena = test::new_arena(1024 * kMiB);
  std::byte* model = arena.allocate(200 * kMiB, 1);
  for (int step = 0; step < 3; ++step) {
    std::byte* gradients = arena.allocate(180 * kMiB, 1);
    arena.free(gradients);
    EXPECT_EQ(reserved_bytes(arena), 380 * kMiB);
  }
  arena.free(model);
  EXPECT_EQ(reserved_bytes(arena), 64 * kMiB);
}

TEST(Arena, SaysThatItIsFullAndGoesOn) {
  Arena& arena = test::new_arena(64 * kMiB);
  std::vector<std::byte*> all;
  try {
    for (;;) all.push_back(arena.allocate(5 * kMiB, 1));
  } catch (const TransportError& error) {
    EXPECT_NE(std::string(error.what()).find("RONDO_ARENA_BYTES"), std::string::npos)
        << error.what();
  }
  EXPECT_GE(all.size(), 10U);
  EXPECT_THROW(static_cast<void>(arena.allocate(65 * kMiB, 1)), TransportError);
  EXPECT_THROW(static_cast<void>(arena.allocate(SIZE_MAX, 1)), TransportError);
  for (std::byte* one : all) arena.free(one);
  EXPECT_NE(arena.allocate(60 * kMiB, 1), nullptr) << "the pieces are one again";
}

TEST(Arena, TooLittleMemoryIsAnErrorAndNothingIsTaken) {
  Arena& arena = test::new_arena(std::size_t{1} << 40U);
  const std::size_t before = reserved_bytes(arena);
  try {
    static_cast<void>(arena.allocate(std::size_t{1} << 39U, 1));
    ADD_FAILURE() << "this machine has 512 GiB";
  } catch (const TransportError& error) {
    EXPECT_NE(std::string(error.what()).find("are left"), std::string::npos) << error.what();
  }
  EXPECT_EQ(reserved_bytes(arena), before);
  arena.free(arena.allocate(100, 1));
}

TEST(Arena, IsSmallerWhereTheSystemGivesFewerAddresses) {
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &usual), 0);
  const rlimit little{100 * kMiB, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const std::size_t bytes = test::new_arena(1024 * kMiB).bytes();
  EXPECT_LE(bytes, 100 * kMiB);
  EXPECT_GE(bytes, 50 * kMiB);
  const rlimit none{kMiB, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  EXPECT_THROW(test::new_arena(1024 * kMiB), TransportError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &usual), 0);
}

// A process that was stopped may still write to the pages of the file under private ones.
TEST(Arena, NeverHandsOutPagesUnderPrivateOnes) {
  Arena& arena = test::new_arena(32 * kMiB);
  std::byte* data = arena.allocate(kMiB, 1);
  std::memset(data, 1, kMiB);
  ASSERT_TRUE(arena.make_private(data + 10'000, 5000));  // pages 2 and 3
  std::memset(data, 2, kMiB);
  ASSERT_TRUE(arena.make_private(data + 10'000, 5000)) << "again";
  ASSERT_TRUE(arena.make_private(data + 13'000, 100)) << "page 3";
  ASSERT_TRUE(arena.make_private(data + 8000, 6000)) << "pages 1 to 3, of which 1 is new";
  std::memset(data + 4096, 3, 100);
  ASSERT_TRUE(arena.make_private(data + 100, 20'000)) << "pages 0 to 4";
  for (std::size_t i = 0; i < kMiB; ++i) {
    ASSERT_EQ(data[i], i >= 4096 && i < 4196 ? std::byte{3} : std::byte{2}) << i;
  }
  arena.free(data);
  std::vector<std::byte*> all;
  try {
    for (;;) all.push_back(arena.allocate(4096, 4096));
  } catch (const TransportError&) {
  }
  EXPECT_GT(all.size(), 7000U);
  for (std::byte* one : all) {
    EXPECT_TRUE(arena.offset_of(one, 4096).has_value()) << one - arena.data();
    EXPECT_TRUE(one + 4096 <= data || one >= data + 20'480) << one - data;
  }
}

TEST(Arena, MakesNoPagesPrivateWhileACallShowsThem) {
  Arena& arena = test::new_arena(32 * kMiB);
  std::byte* data = arena.allocate(100'000, 1);
  const std::size_t offset = *arena.offset_of(data, 100'000);
  {
    Arena::Use call(arena, {ByteRange{offset + 5000, 10}, ByteRange{offset + 50'000, 10'000}});
    const Arena::Use another(arena, {ByteRange{offset, 10}, ByteRange{offset, 10}});
    EXPECT_FALSE(arena.make_private(data, 100'000));
    EXPECT_FALSE(arena.make_private(data + 8000, 100)) << "the page is that of byte 5000";
    EXPECT_TRUE(arena.offset_of(data, 100'000).has_value());
    EXPECT_TRUE(arena.make_private(data + 80'000, 100)) << "no call has shown that page";
    call.end();
    EXPECT_TRUE(arena.make_private(data + 8000, 100));
    EXPECT_FALSE(arena.make_private(data, 10));
  }
  EXPECT_TRUE(arena.make_private(data, 100'000));
  EXPECT_FALSE(arena.offset_of(data, 100'000).has_value());
}

TEST(Arena, KeepsNoCopiesOfPrivatePagesThatAreFreed) {
  const auto own_bytes = [] {
    std::ifstream status("/proc/self/status");
    std::string word;
    std::size_t kib = 0;
    while (status >> word && word != "RssAnon:") {
    }
    status >> kib;
    return kib * 1024;
  };
  Arena& arena = test::new_arena(128 * kMiB);
  const std::size_t before = own_bytes();
  std::byte* data = arena.allocate(64 * kMiB, 1);
  ASSERT_TRUE(arena.make_private(data, 64 * kMiB));
  EXPECT_GE(own_bytes(), before + 60 * kMiB);
  arena.free(data);
  EXPECT_LT(own_bytes(), before + 30 * kMiB);
}

// What /sys says of huge pages in shared memory: "always within_size [advise] never ...".
TEST(Arena, HasHugePagesWhereTheyAreAllowed) {
  std::ifstream allowed("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  std::string choice;
  while (allowed >> choice && choice.front() != '[') {
  }
  if (choice == "[never]" || choice == "[deny]" || !allowed) {
    GTEST_SKIP() << "this system has no huge pages in shared memory: " << choice;
  }
  Arena& arena = test::new_arena(64 * kMiB);
  const std::byte* data = arena.allocate(32 * kMiB, 1);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % (2 * kMiB), 0U);
  std::ifstream pages("/proc/self/smaps");
  std::string line;
  std::size_t huge_kib = 0;
  while (std::getline(pages, line)) {
    if (line.rfind("ShmemPmdMapped:", 0) == 0) huge_kib += std::stoul(line.substr(15));
  }
  EXPECT_GE(huge_kib, 16U << 10U);
}

TEST(HostTurn, EndsWithItsProcessAlthoughAChildWasForkedMeanwhile) {
  Arena* arena = process_arena();  // which makes forked children leave turns to their parents
  ASSERT_NE(arena, nullptr);
  int go_on[2];
  ASSERT_EQ(::pipe(go_on), 0);
  pid_t child = 0;
  {
    const HostTurn turn(std::chrono::seconds(10));
    ASSERT_TRUE(turn.has_it());
    child = ::fork();
    if (child == 0) {
      char any = 0;
      ::_exit(::read(go_on[0], &any, 1) == 1 ? 0 : 1);
    }
  }
  EXPECT_TRUE(HostTurn(std::chrono::seconds(1)).has_it());
  EXPECT_EQ(::write(go_on[1], "x", 1), 1);
  int status = 1;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}

// Another thread of this process counts on the same page.
TEST(Arena, LosesNoWriteOfThisProcessWhenPagesBecomePrivate) {
  constexpr std::size_t kPage = 4096;
  Arena& arena = test::new_arena(64 * kMiB);
  for (int round = 0; round < 50; ++round) {
    std::byte* data = arena.allocate(64 * kPage, 1);
    std::atomic<bool> stop = false;
    std::atomic<std::uint64_t> begun = 0;
    std::uint64_t counted = 0;
    auto& counter = *reinterpret_cast<volatile std::uint64_t*>(data + 32 * kPage);
    counter = 0;
    std::thread counts([&] {
      while (!stop) {
        counter = counter + 1;
        ++counted;
        begun = counted;
      }
    });
    while (begun < 100) std::this_thread::yield();
    EXPECT_TRUE(arena.make_private(data, 64 * kPage));
    stop = true;
    counts.join();
    ASSERT_EQ(counter, counted) << round;
  }
}

}  // namespace
}  // namespace rondo::detail
