#include "gradient/gradient_store.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t bytes_of(const Parameter& parameter) {
  return parameter.count * size_of(parameter.type);
}

std::size_t aligned(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

bool is_owned(const Parameter& parameter) {
  return parameter.gradient == nullptr && parameter.count > 0;
}

}  // namespace

GradientStore::GradientStore(const std::vector<Parameter>& parameters, WireType wire,
                             std::unique_ptr<BucketMemory> memory)
    : parameters_(parameters), wire_(wire), memory_(std::move(memory)) {
  for (const Parameter& parameter : parameters) {
    gradients_.push_back(static_cast<std::byte*>(parameter.gradient));
    if (is_owned(parameter)) owned_bytes_ += aligned(bytes_of(parameter));
  }
}

std::byte* GradientStore::gradient_of_type(std::size_t parameter, DataType type) const {
  if (parameter >= parameters_.size()) {
    throw UsageError(fmt::format("gradient: there is no parameter {}; there are {}", parameter,
                                 parameters_.size()));
  }
  if (type != parameters_[parameter].type) {
    throw UsageError(fmt::format("gradient: parameter {} ('{}') is of type {}, not {}", parameter,
                                 parameters_[parameter].name, name(parameters_[parameter].type),
                                 name(type)));
  }
  return gradients_[parameter];
}

DataType GradientStore::wire_type(DataType type) const {
  if (type != DataType::f32 || wire_ == WireType::exact) return type;
  return wire_ == WireType::bf16 ? DataType::bf16 : DataType::f16;
}

// Bucket by bucket, so that the members of a bucket are side by side if the store owns them all.
std::vector<std::byte*> GradientStore::place_owned(const std::vector<Bucket>& buckets,
                                                   std::byte* memory) const {
  std::vector<std::byte*> places = gradients_;
  for (const Bucket& bucket : buckets) {
    std::size_t bytes = 0;
    for (const Member& member : bucket.members) {
      const Parameter& parameter = parameters_[member.parameter];
      if (!is_owned(parameter)) continue;
      places[member.parameter] = memory + bytes;
      bytes += bytes_of(parameter);
    }
    memory += aligned(bytes);
  }
  return places;
}

std::byte* GradientStore::first_of(const Bucket& bucket,
                                   const std::vector<std::byte*>& gradients) const {
  for (const Member& member : bucket.members) {
    if (parameters_[member.parameter].count > 0) return gradients[member.parameter];
  }
  return nullptr;
}

bool GradientStore::goes_in_place(const Bucket& bucket) const {
  if (wire_type(bucket.type) != bucket.type || bucket.stride_elems != bucket.count) return false;
  std::size_t owned = 0;
  std::size_t members = 0;
  const std::byte* next = nullptr;
  bool side_by_side = true;
  for (const Member& member : bucket.members) {
    const Parameter& parameter = parameters_[member.parameter];
    if (parameter.count == 0) continue;
    ++members;
    if (is_owned(parameter)) {
      ++owned;
      continue;
    }
    const auto* gradient = static_cast<const std::byte*>(parameter.gradient);
    side_by_side = side_by_side && (next == nullptr || gradient == next);
    next = gradient + bytes_of(parameter);
  }
  if (members == 0) return false;
  return owned == members || (owned == 0 && side_by_side);  // place_owned puts its own side by side
}

// All memory is allocated before anything changes, so that a failure leaves the store as it was.
// For a moment there is memory for the old buckets and for the new ones. One allocation, since
// ranks may own different gradients.
void GradientStore::lay_out(std::vector<Bucket> buckets) {
  std::size_t bytes = owned_bytes_;
  for (const Bucket& bucket : buckets) {
    if (!goes_in_place(bucket)) bytes += aligned(bucket.count * size_of(wire_type(bucket.type)));
  }
  BucketMemory::Owner block = memory_->allocate(bytes);
  std::vector<std::byte*> gradients = place_owned(buckets, block.get());
  std::byte* free = block.get() + owned_bytes_;
  std::vector<Load> loads;
  for (const Bucket& bucket : buckets) {
    const DataType type = wire_type(bucket.type);
    const bool in_place = goes_in_place(bucket);
    std::byte* data = in_place ? first_of(bucket, gradients) : free;
    if (!in_place) free += aligned(bucket.count * size_of(type));
    loads.push_back({data, bucket.count, type, in_place});
  }
  for (std::size_t i = 0; block_ && i < gradients.size(); ++i) {
    if (!is_owned(parameters_[i])) continue;
    memory_->copy(gradients[i], gradients_[i], bytes_of(parameters_[i]));
  }
  memory_->settle();
  buckets_ = std::move(buckets);
  gradients_ = std::move(gradients);
  block_ = std::move(block);
  loads_ = std::move(loads);
}

template <class Visit>
void GradientStore::for_each_piece(const Bucket& bucket, Visit&& visit) const {
  for (const Member& member : bucket.members) {
    const std::size_t count = parameters_[member.parameter].count;
    std::size_t in_bucket = member.offset_elems;
    for (std::size_t from = 0; from < count; from += member.piece_elems) {
      const std::size_t elems = std::min(member.piece_elems, count - from);
      visit(gradients_[member.parameter] + from * size_of(bucket.type), in_bucket, elems);
      in_bucket += bucket.stride_elems;
    }
  }
}

void GradientStore::clear(std::size_t parameter) {
  if (parameters_[parameter].count == 0) return;
  memory_->clear(gradients_[parameter], bytes_of(parameters_[parameter]));
}

void GradientStore::pack(std::size_t bucket, double factor) {
  const Bucket& plan = buckets_[bucket];
  const Load& load = loads_[bucket];
  if (factor == 0) {  // not multiplied: the gradients may hold NaN
    memory_->clear(load.data, load.count * size_of(load.type));
    return;
  }
  if (load.in_place) {
    memory_->scale(load.data, load.type, load.data, load.type, load.count, factor);
    return;
  }
  for_each_piece(plan, [&](const std::byte* gradient, std::size_t at, std::size_t elems) {
    memory_->scale(static_cast<std::byte*>(load.data) + at * size_of(load.type), load.type,
                   gradient, plan.type, elems, factor);
  });
}

void GradientStore::unpack(std::size_t bucket) {
  const Bucket& plan = buckets_[bucket];
  const Load& load = loads_[bucket];
  if (load.in_place) return;
  for_each_piece(plan, [&](std::byte* gradient, std::size_t at, std::size_t elems) {
    memory_->scale(gradient, plan.type,
                   static_cast<const std::byte*>(load.data) + at * size_of(load.type), load.type,
                   elems, 1);
  });
}

}  // namespace rondo::detail
