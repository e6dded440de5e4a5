#include "gradient/bucket_plan.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <rondo/chunk.hpp>

#include "gradient/bucket_size.hpp"
#include "schedule/slicing.hpp"

namespace rondo::detail {
namespace {

using Groups = std::vector<std::vector<std::size_t>>;

Groups groups_of(const std::vector<Bucket>& buckets) {
  Groups groups;
  for (const Bucket& bucket : buckets) {
    groups.emplace_back();
    for (const Member& member : bucket.members) groups.back().push_back(member.parameter);
  }
  return groups;
}

std::vector<ParameterShape> f32(const std::vector<std::size_t>& counts) {
  std::vector<ParameterShape> shapes;
  for (const std::size_t count : counts) shapes.push_back({count, DataType::f32});
  return shapes;
}

TEST(BucketPlan, FillsUpToTheCapFromTheLastParameterOn) {
  const auto shapes = f32({10, 10, 10, 10, 10});
  const auto buckets = plan_buckets(shapes, reverse_order(5), {40, 80, 0});
  EXPECT_EQ(groups_of(buckets), (Groups{{4}, {2, 3}, {0, 1}}));
  EXPECT_EQ(buckets[1].count, 20U);
  EXPECT_EQ(buckets[1].members[1].offset_elems, 10U);
}

TEST(BucketPlan, NeverSplitsAParameterNorExceedsTheCapWithTwo) {
  const auto shapes = f32({50, 25'000, 50, 102'400, 128, 1280, 10});
  for (const std::size_t cap : {4U, 400U, 8192U, 65'536U, 1U << 20U}) {
    std::vector<std::size_t> seen;
    for (const Bucket& bucket : plan_buckets(shapes, reverse_order(7), {cap, cap, 0})) {
      for (const Member& member : bucket.members) seen.push_back(member.parameter);
      EXPECT_TRUE(bucket.members.size() == 1 || bucket.count * 4 <= cap) << cap;
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6}));
  }
}

TEST(BucketPlan, KeepsTypesApartAndGoesWhenTheLastMemberHasCome) {
  const std::vector<ParameterShape> shapes = {
      {4, DataType::f32}, {4, DataType::f64}, {4, DataType::f32}, {4, DataType::f64}};
  // Both stay open to the end; parameter 1 comes before parameter 0.
  EXPECT_EQ(groups_of(plan_buckets(shapes, reverse_order(4), {1024, 1024, 0})),
            (Groups{{1, 3}, {0, 2}}));
}

TEST(BucketPlan, FollowsAnOrder) {
  const std::vector<std::uint32_t> order = complete_order(std::vector<std::uint32_t>{2, 0}, 4);
  EXPECT_EQ(order, (std::vector<std::uint32_t>{2, 0, 3, 1}));
  EXPECT_EQ(groups_of(plan_buckets(f32({1, 1, 1, 1}), order, {8, 8, 0})), (Groups{{0, 2}, {1, 3}}));
}

// Which chunk an element is in, and so which rank adds first, depends on its parameter alone.
TEST(BucketPlan, AlignedElementsKeepTheirChunkWhateverTheBucket) {
  const auto shapes = f32({1000, 1, 17, 4096, 160});
  for (const int ranks : {1, 2, 3, 4, 8}) {
    const auto n = static_cast<std::uint64_t>(ranks);
    for (const std::size_t cap : {4U, 5000U, 1U << 20U}) {
      for (const Bucket& bucket :
           plan_buckets(shapes, reverse_order(shapes.size()), {cap, cap, ranks})) {
        for (std::uint64_t chunk = 0; chunk < n; ++chunk) {
          const Range range = chunk_range(bucket.count, n, chunk, kChunkGranuleBytes / 4);
          EXPECT_EQ(range, (Range{chunk * bucket.stride_elems, bucket.stride_elems}));
        }
        for (const Member& member : bucket.members) {
          EXPECT_GE(member.piece_elems * n, shapes[member.parameter].count);
          EXPECT_LE(member.piece_elems * n, shapes[member.parameter].count + 32 * n);
        }
      }
    }
  }
}

TEST(BucketSize, GrowsWithTheModelTheLatencyAndTheRate) {
  const CallCost gigabit{200, 119};
  EXPECT_EQ(bucket_bytes_for(gigabit, 102'000'000), std::size_t{1} << 20U);
  EXPECT_EQ(bucket_bytes_for(gigabit, 516'272), std::size_t{64} << 10U);
  EXPECT_EQ(bucket_bytes_for({1, 1}, 100), std::size_t{8} << 10U);
  EXPECT_EQ(bucket_bytes_for({1e6, 1e6}, std::size_t{1} << 40U), std::size_t{64} << 20U);
}

}  // namespace
}  // namespace rondo::detail
