// Registered memory: where ranks find it, and what stays of it when it is freed.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include <gtest/gtest.h>

#include "carrier/registry.hpp"

namespace rondo::detail {
namespace {

// Two ranks' blocks of the same pages, as two processes have them.
class TwoRanks {
 public:
  explicit TwoRanks(std::size_t piece_bytes = 8192)
      : object_(create_shared(page_bytes() + 2 * piece_bytes, 0)), piece_bytes_(piece_bytes) {}

  std::shared_ptr<RegisteredBlock> block_of(int rank) {
    RegisteredBlock::Pieces pieces;
    pieces.mapping = map_shared(object_.file, object_.mapping.bytes());
    std::byte* begin = pieces.mapping.data();
    pieces.data = {begin + page_bytes(), begin + page_bytes() + piece_bytes_};
    auto* words = reinterpret_cast<std::uint64_t*>(begin);
    pieces.freed = {words, words + 1};
    pieces.rank = rank;
    pieces.bytes = piece_bytes_;
    return std::make_shared<RegisteredBlock>(std::move(pieces));
  }

 private:
  SharedObject object_;
  std::size_t piece_bytes_;
};

TEST(Registry, OfOneProcessReachesAllMemory) {
  const Registry registry(true);
  int here = 0;
  EXPECT_TRUE(registry.reaches_any());
  EXPECT_EQ(registry.find(1, registry.location_of(&here, sizeof(here))),
            reinterpret_cast<std::byte*>(&here));
}

TEST(Registry, FindsAnotherRanksMemoryByItsLocation) {
  Registry registries[] = {Registry(false), Registry(false)};
  EXPECT_FALSE(registries[0].reaches_any());
  std::vector<std::shared_ptr<RegisteredBlock>> blocks[2];
  for (const std::size_t bytes : {8192U, 16384U, 4096U}) {
    TwoRanks ranks(bytes);
    for (int rank = 0; rank < 2; ++rank) {
      blocks[rank].push_back(ranks.block_of(rank));
      registries[rank].add(blocks[rank].back(), 16384);
    }
  }
  EXPECT_TRUE(registries[0].reaches_any());
  for (std::size_t block = 0; block < 3; ++block) {
    std::byte* data = blocks[0][block]->own() + 100;
    *data = static_cast<std::byte>(10 + block);
    const std::uint64_t location = registries[0].location_of(data, 50);
    ASSERT_GE(location, kFirstLocation);
    EXPECT_EQ(*registries[1].find(0, location), static_cast<std::byte>(10 + block));
    EXPECT_NE(registries[1].find(0, location), data);
  }
  // The end of a block is not the beginning of the next, and no memory of another rank is this
  // rank's.
  EXPECT_NE(registries[0].location_of(blocks[0][0]->own() + 8000, 192), kUnreachable);
  EXPECT_EQ(registries[0].location_of(blocks[0][0]->own() + 8000, 193), kUnreachable);
  EXPECT_EQ(registries[0].location_of(blocks[0][0]->piece(1), 1), kUnreachable);
  int elsewhere = 0;
  EXPECT_EQ(registries[0].location_of(&elsewhere, sizeof(elsewhere)), kUnreachable);
}

TEST(Registry, ForgetsABlockWhenAllRanksHaveFreedIt) {
  Registry registry(false);
  TwoRanks ranks;
  auto mine = ranks.block_of(0);
  const auto theirs = ranks.block_of(1);
  registry.add(mine, 8192);
  const std::weak_ptr<RegisteredBlock> watched = mine;
  mine->free_own();
  mine.reset();
  TwoRanks others;
  registry.add(others.block_of(0), 8192);
  EXPECT_FALSE(watched.expired()) << "rank 1 may still pass its piece to calls";
  const std::uint64_t location = kFirstLocation + 7;
  *(theirs->own() + 7) = std::byte{42};
  EXPECT_EQ(*registry.find(1, location), std::byte{42});
  theirs->free_own();
  registry.add(others.block_of(0), 8192);
  EXPECT_TRUE(watched.expired());
}

TEST(RegisteredBlock, GivesItsOwnPieceBackAndNoOther) {
  TwoRanks ranks;
  const auto mine = ranks.block_of(0);
  const auto theirs = ranks.block_of(1);
  std::memset(mine->own(), 1, mine->bytes());
  std::memset(theirs->own(), 2, theirs->bytes());
  mine->free_own();
  // Pages that were given back are zero when they are read again.
  EXPECT_EQ(*theirs->piece(0), std::byte{0});
  EXPECT_EQ(*theirs->own(), std::byte{2});
}

// Byte by byte: of every block, also of one between blocks that are freed.
TEST(Registry, FindsMemoryAmongManyBlocks) {
  Registry registry(false);
  std::vector<std::shared_ptr<RegisteredBlock>> blocks;
  std::vector<std::shared_ptr<RegisteredBlock>> others;
  for (int number = 0; number < 40; ++number) {
    TwoRanks ranks;
    blocks.push_back(ranks.block_of(0));
    others.push_back(ranks.block_of(1));
    registry.add(blocks.back(), 8192);
  }
  for (std::size_t number = 0; number < blocks.size(); number += 2) {
    blocks[number]->free_own();
    others[number]->free_own();
  }
  TwoRanks ranks;
  registry.add(ranks.block_of(0), 8192);
  for (std::size_t number = 1; number < blocks.size(); number += 2) {
    const std::byte* own = blocks[number]->own();
    const std::uint64_t first = kFirstLocation + number * 8192;
    EXPECT_EQ(registry.location_of(own, 8192), first) << number;
    EXPECT_EQ(registry.location_of(own + 8191, 1), first + 8191) << number;
    EXPECT_EQ(registry.location_of(own + 1, 8192), kUnreachable) << number;
  }
  int here = 0;
  EXPECT_EQ(registry.location_of(&here, sizeof(here)), kUnreachable);
}

TEST(RegisteredBlock, GivesItsPiecesBackWhereSomeArePrivate) {
  TwoRanks ranks(4 * page_bytes());
  const auto mine = ranks.block_of(0);
  const auto theirs = ranks.block_of(1);
  std::memset(mine->own(), 1, mine->bytes());
  ASSERT_TRUE(mine->make_private(mine->own() + page_bytes(), 10));
  mine->free_own();
  for (const std::size_t page : {0U, 2U, 3U}) {
    EXPECT_EQ(theirs->piece(0)[page * page_bytes()], std::byte{0}) << page;
  }
}

TEST(RegisteredBlock, IsNotFreedByAForkedChild) {
  TwoRanks ranks;
  const auto mine = ranks.block_of(0);
  *mine->own() = std::byte{5};
  const pid_t child = ::fork();
  if (child == 0) {
    mine->free_own();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(*mine->own(), std::byte{5});
  EXPECT_FALSE(mine->all_have_freed());
}

TEST(RegisteredBlock, CanBeTakenFromTheOthers) {
  TwoRanks ranks;
  const auto mine = ranks.block_of(0);
  const auto theirs = ranks.block_of(1);
  std::memset(mine->own(), 1, mine->bytes());
  std::byte* const before = mine->own();
  ASSERT_TRUE(mine->make_private(mine->own() + 5, mine->bytes() - 5));
  EXPECT_EQ(mine->own(), before);
  std::memset(theirs->piece(0), 9,
              mine->bytes());  // what a process that was stopped writes when it goes on
  for (std::size_t i = 0; i < mine->bytes(); ++i) ASSERT_EQ(mine->own()[i], std::byte{1}) << i;
  *mine->piece(1) = std::byte{3};
  EXPECT_EQ(*theirs->own(), std::byte{3}) << "only rank 0's piece is private";
  mine->free_own();
}

}  // namespace
}  // namespace rondo::detail
