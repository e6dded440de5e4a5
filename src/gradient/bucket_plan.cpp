#include "gradient/bucket_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <rondo/chunk.hpp>

#include "schedule/slicing.hpp"

namespace rondo::detail {
namespace {

struct OpenBucket {
  std::vector<std::size_t> parameters;
  std::size_t bytes = 0;
  std::size_t last = 0;  // place in the order of the member that comes last
};

std::size_t divide_up(std::size_t value, std::size_t by) { return (value + by - 1) / by; }

Bucket lay_out(std::span<const ParameterShape> shapes, std::vector<std::size_t> parameters,
               int aligned_to_ranks) {
  std::sort(parameters.begin(), parameters.end());
  Bucket bucket;
  bucket.type = shapes[parameters.front()].type;
  std::size_t offset = 0;
  // The granule is in elements of the smallest type, so that pieces are whole granules in whichever
  // type is sent.
  constexpr std::size_t granule = kChunkGranuleBytes / size_of(DataType::bf16);
  for (const std::size_t parameter : parameters) {
    const std::size_t count = shapes[parameter].count;
    const std::size_t piece =
        aligned_to_ranks > 0
            ? divide_up(count, granule * static_cast<std::size_t>(aligned_to_ranks)) * granule
            : count;
    bucket.members.push_back({parameter, offset, piece});
    offset += piece;
  }
  bucket.stride_elems = offset;
  bucket.count = offset * static_cast<std::size_t>(std::max(aligned_to_ranks, 1));
  return bucket;
}

}  // namespace

std::vector<Bucket> plan_buckets(std::span<const ParameterShape> shapes,
                                 std::span<const std::uint32_t> order, const BucketLimits& limits) {
  std::map<DataType, OpenBucket> open;
  std::vector<OpenBucket> closed;
  bool any_closed = false;
  const auto close = [&](OpenBucket& bucket) {
    closed.push_back(std::move(bucket));
    bucket = {};
    any_closed = true;
  };
  for (std::size_t place = 0; place < order.size(); ++place) {
    const std::size_t parameter = order[place];
    const std::size_t bytes = shapes[parameter].count * size_of(shapes[parameter].type);
    OpenBucket& bucket = open[shapes[parameter].type];
    const std::size_t cap = any_closed ? limits.bytes : limits.first_bytes;
    if (bucket.bytes > 0 && bucket.bytes + bytes > cap) close(bucket);
    bucket.parameters.push_back(parameter);
    bucket.bytes += bytes;
    bucket.last = place;
    if (bucket.bytes >= (any_closed ? limits.bytes : limits.first_bytes)) close(bucket);
  }
  for (auto& [type, bucket] : open) {
    if (!bucket.parameters.empty()) close(bucket);
  }
  std::sort(closed.begin(), closed.end(),
            [](const OpenBucket& a, const OpenBucket& b) { return a.last < b.last; });
  std::vector<Bucket> buckets;
  for (OpenBucket& bucket : closed) {
    buckets.push_back(lay_out(shapes, std::move(bucket.parameters), limits.aligned_to_ranks));
  }
  return buckets;
}

std::size_t largest_bucket_elems(std::span<const ParameterShape> shapes, DataType type,
                                 const BucketLimits& limits) {
  std::size_t all = 0;
  std::size_t largest = 0;
  for (const ParameterShape& shape : shapes) {
    if (shape.type != type) continue;
    all += shape.count;
    largest = std::max(largest, shape.count);
  }
  const std::size_t cap = std::max(limits.bytes, limits.first_bytes) / size_of(type);
  return std::min(all, std::max(cap, largest));
}

std::vector<std::vector<std::size_t>> members_of(std::span<const Bucket> buckets) {
  std::vector<std::vector<std::size_t>> result;
  for (const Bucket& bucket : buckets) {
    std::vector<std::size_t>& members = result.emplace_back();
    for (const Member& member : bucket.members) members.push_back(member.parameter);
  }
  return result;
}

bool same_buckets(std::span<const Bucket> a, std::span<const Bucket> b) {
  return members_of(a) == members_of(b);
}

std::vector<std::uint32_t> reverse_order(std::size_t parameters) {
  std::vector<std::uint32_t> order(parameters);
  std::iota(order.rbegin(), order.rend(), 0U);
  return order;
}

std::vector<std::uint32_t> complete_order(std::span<const std::uint32_t> marked,
                                          std::size_t parameters) {
  std::vector<std::uint32_t> order(marked.begin(), marked.end());
  std::vector<bool> seen(parameters, false);
  for (const std::uint32_t parameter : marked) seen[parameter] = true;
  for (const std::uint32_t parameter : reverse_order(parameters)) {
    if (!seen[parameter]) order.push_back(parameter);
  }
  return order;
}

}  // namespace rondo::detail
