// Checks of Communicator::split that hold for ranks of all kinds.
#pragma once

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "bench/exact_values.hpp"

namespace rondo::test {

inline int sum_of_ranks(Communicator& comm, int mine) {
  std::vector<int> value = {mine};
  comm.all_reduce(value);
  return value[0];
}

// `ranks`: those that the group must have, in its order, by their rank in the parent; `mine`: this
// rank's there.
inline void expect_group_of(Communicator& group, const std::vector<int>& ranks, int mine) {
  ASSERT_EQ(group.size(), static_cast<int>(ranks.size()));
  ASSERT_EQ(ranks[static_cast<std::size_t>(group.rank())], mine);
  std::vector<int> gathered(ranks.size(), -1);
  const std::vector<int> own = {mine};
  group.all_gather(own, gathered);
  EXPECT_EQ(gathered, ranks);
  for (const std::size_t count : {0U, 1U, 1000U, 300'000U}) {
    std::vector<int> values(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = exact::input<int>(ReduceOp::sum, group.rank(), group.size(), i);
    }
    group.all_reduce(values);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(values[i], exact::result<int>(ReduceOp::sum, group.size(), i)) << i;
    }
  }
}

// Groups by rank modulo 2, in the reverse order of ranks; then each of them once more, in two
// parts; and duplicates.
inline void expect_groups_by_color(Communicator& comm) {
  const int rank = comm.rank();
  std::optional<Communicator> group = comm.split(rank % 2, -rank);
  std::vector<int> members;
  for (int one = comm.size() - 1; one >= 0; --one) {
    if (one % 2 == rank % 2) members.push_back(one);
  }
  ASSERT_TRUE(group.has_value());
  expect_group_of(*group, members, rank);

  std::optional<Communicator> part = group->split(group->rank() == 0 ? 0 : 1);
  ASSERT_TRUE(part.has_value());
  EXPECT_EQ(part->size(), group->rank() == 0 ? 1 : group->size() - 1);
  EXPECT_EQ(sum_of_ranks(*part, 1), part->size());

  std::vector<int> all;
  for (int one = 0; one < comm.size(); ++one) all.push_back(one);
  Communicator first = comm.duplicate();
  Communicator second = first.duplicate();
  expect_group_of(second, all, rank);
  expect_group_of(first, all, rank);
  // Equal keys: in the order of ranks.
  group = comm.split(5);
  expect_group_of(*group, all, rank);
}

}  // namespace rondo::test
