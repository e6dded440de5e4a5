// Which parameters share a bucket, and where in it they lie: pure functions, with equal results on
// all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <rondo/types.hpp>

namespace rondo::detail {

struct ParameterShape {
  std::size_t count = 0;
  DataType type = DataType::f32;
};

// A parameter's place in its bucket: runs of `piece_elems` elements (the last ones may be shorter
// or empty), `stride_elems` apart. Only the layout-independent mode has more than one run.
struct Member {
  std::size_t parameter = 0;
  std::size_t offset_elems = 0;
  std::size_t piece_elems = 0;
};

struct Bucket {
  DataType type = DataType::f32;
  std::vector<Member>
      members;  // in the order of the parameters, so that neighbours in memory stay neighbours
  std::size_t count = 0;  // elements, with padding
  std::size_t stride_elems = 0;
};

struct BucketLimits {
  std::size_t first_bytes = 0;
  std::size_t bytes = 0;
  // 0: members lie side by side. Else each member is cut as the ring of that many ranks would cut
  // it as a vector of its own. So the order in which an element is summed depends on its place in
  // its parameter, not on its bucket:
  //
  //   4 ranks, parameters a (10 granules) and b (4):
  //   chunk   0       1       2       3
  //           aaa b   aaa b   aaa b   a-- b
  int aligned_to_ranks = 0;
};

// Returns the buckets in the order in which they are reduced; `order` is that in which gradients
// are expected. A bucket has one type, and is reduced when the last of its members has come.
std::vector<Bucket> plan_buckets(std::span<const ParameterShape> shapes,
                                 std::span<const std::uint32_t> order, const BucketLimits& limits);

// The most elements of `type` that a bucket has in any order of arrival.
std::size_t largest_bucket_elems(std::span<const ParameterShape> shapes, DataType type,
                                 const BucketLimits& limits);

bool same_buckets(std::span<const Bucket> a, std::span<const Bucket> b);

// The parameters of each bucket.
std::vector<std::vector<std::size_t>> members_of(std::span<const Bucket> buckets);

// Last to first, as backprop goes.
std::vector<std::uint32_t> reverse_order(std::size_t parameters);

// `marked`, followed by the parameters that are missing in it.
std::vector<std::uint32_t> complete_order(std::span<const std::uint32_t> marked,
                                          std::size_t parameters);

}  // namespace rondo::detail
