// What ranks reach of each other's arenas.

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "memory/reach.hpp"
#include "tests/memory/new_arena.hpp"

namespace rondo::detail {
namespace {

TEST(Reach, OfOneProcessIsAllMemory) {
  const Reach reach = Reach::in_one_process();
  int here = 0;
  EXPECT_TRUE(reach.reaches_any());
  EXPECT_EQ(reach.find(1, reach.location_of(&here, sizeof(here))),
            reinterpret_cast<std::byte*>(&here));
}

// Two ranks as two processes have them: each has mapped the arena of the other.
class TwoRanks : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = std::size_t{64} << 20U;

  Reach reach_of(int rank) {
    std::vector<Reach::RankArena> arenas(2);
    for (int other = 0; other < 2; ++other) {
      Arena& arena = *arenas_[other];
      Reach::RankArena& one = arenas[static_cast<std::size_t>(other)];
      one.data = arena.data();
      if (other == rank) continue;
      one.owner = map_arena(arena.file(), name_of(arena));
      one.data = one.owner->data();
    }
    return {*arenas_[rank], arenas};
  }

  Arena* arenas_[2] = {&test::new_arena(kBytes), &test::new_arena(kBytes)};
};

TEST_F(TwoRanks, FindEachOthersMemoryByItsLocation) {
  const Reach reaches[] = {reach_of(0), reach_of(1)};
  EXPECT_TRUE(reaches[0].reaches_any());
  EXPECT_FALSE(Reach().reaches_any());
  for (const std::size_t bytes : {1U, 100U, 8192U, 100'000U, 10'000'000U}) {
    std::byte* data = arenas_[0]->allocate(bytes, 1);
    std::memset(data, static_cast<int>(bytes % 251), bytes);
    const std::uint64_t location = reaches[0].location_of(data, bytes);
    ASSERT_GE(location, kFirstLocation);
    std::byte* there = reaches[1].find(0, location);
    EXPECT_NE(there, data);
    EXPECT_EQ(std::memcmp(there, data, bytes), 0);
    EXPECT_EQ(reaches[0].find(0, location), data);
    EXPECT_EQ(reaches[1].location_of(data, bytes), kUnreachable) << "it is memory of rank 0";
    there[bytes - 1] = std::byte{253};
    EXPECT_EQ(data[bytes - 1], std::byte{253});
  }
  int elsewhere = 0;
  EXPECT_EQ(reaches[0].location_of(&elsewhere, sizeof(elsewhere)), kUnreachable);
  EXPECT_NE(reaches[0].location_of(arenas_[0]->data() + kBytes - 8, 8), kUnreachable);
  EXPECT_EQ(reaches[0].location_of(arenas_[0]->data() + kBytes - 8, 9), kUnreachable);
  EXPECT_EQ(reaches[0].location_of(arenas_[0]->data() - 1, 1), kUnreachable);
}

TEST_F(TwoRanks, MapEachArenaOnce) {
  const Reach one = reach_of(1);
  const Reach another = reach_of(1);
  const std::uint64_t location = one.location_of(arenas_[1]->allocate(10, 1), 10);
  EXPECT_EQ(one.find(0, location), another.find(0, location));
}

TEST(PeerArena, IsTheNamedFileAndNoOther) {
  Arena& arena = test::new_arena(std::size_t{32} << 20U);
  Arena& other = test::new_arena(std::size_t{32} << 20U);
  EXPECT_EQ(mapped_arena(name_of(arena)), nullptr);
  EXPECT_THROW(map_arena(other.file(), name_of(arena)), TransportError);
  {
    const PeerArena mapped = map_arena(arena.file(), name_of(arena));
    EXPECT_EQ(mapped_arena(name_of(arena)), mapped);
    EXPECT_EQ(mapped_arena(name_of(other)), nullptr);
  }
  EXPECT_EQ(mapped_arena(name_of(arena)), nullptr) << "nobody has it any more";
  const FileDescriptor unsealed(::memfd_create("test", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_THROW(map_arena(unsealed, name_of(unsealed)), TransportError);
}

TEST_F(TwoRanks, PagesThatWereMadePrivateAreNotSeenByTheOthers) {
  const std::size_t bytes = 3 * page_bytes();
  const Reach mine = reach_of(0);
  const Reach theirs = reach_of(1);
  std::byte* data = arenas_[0]->allocate(bytes, page_bytes());
  std::memset(data, 1, bytes);
  const std::uint64_t location = mine.location_of(data, bytes);
  std::byte* there = theirs.find(0, location);
  ASSERT_TRUE(mine.make_private(data + page_bytes() + 5, 10));
  std::memset(there, 9, bytes);  // what a process that was stopped writes when it goes on
  for (std::size_t i = 0; i < bytes; ++i) {
    const bool is_private = i / page_bytes() == 1;
    ASSERT_EQ(data[i], is_private ? std::byte{1} : std::byte{9}) << i;
  }
  EXPECT_EQ(mine.location_of(data, bytes), kUnreachable);
  EXPECT_EQ(mine.location_of(data + page_bytes(), 1), kUnreachable);
  EXPECT_EQ(mine.location_of(data, page_bytes()), location);
  EXPECT_EQ(mine.location_of(data + 2 * page_bytes(), page_bytes()), location + 2 * page_bytes());
  int elsewhere = 0;
  EXPECT_TRUE(mine.make_private(&elsewhere, sizeof(elsewhere))) << "nobody reaches it anyway";
}

}  // namespace
}  // namespace rondo::detail
