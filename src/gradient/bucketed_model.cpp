#include "gradient/bucketed_model.hpp"

#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

namespace rondo::detail {

BucketedModel::BucketedModel(std::vector<Parameter> parameters, GradientOptions options,
                             std::unique_ptr<BucketMemory> memory)
    : parameters_(std::move(parameters)),
      options_(std::move(options)),
      store_(parameters_, options_.wire, std::move(memory)),
      follows_arrival_(options_.order_by_arrival) {
  for (const Parameter& parameter : parameters_) {
    shapes_.push_back({parameter.count, parameter.type});
  }
}

void BucketedModel::form(const BucketLimits& limits) {
  limits_ = limits;
  store_.lay_out(plan_buckets(shapes_, reverse_order(shapes_.size()), limits_));
}

// If buckets may be formed anew in any order, tests the largest bucket that the limits allow.
void BucketedModel::require_algorithm(const std::function<Algorithm(const Call&)>& choose) const {
  for (std::size_t bucket = 0; bucket < buckets().size(); ++bucket) {
    Call call = call_of(bucket, ReduceOp::sum);
    // A larger bucket may be too large for what the options name. Only direct asks where the
    // buckets are, and that memory is not there yet; it carries all sizes.
    const Algorithm named = options_.algorithm.value_or(Algorithm::automatic);
    const bool bounded = named != Algorithm::automatic && named != Algorithm::direct;
    if (bounded && !options_.layout_independent && follows_arrival_) {
      call.count = largest_bucket_elems(shapes_, buckets()[bucket].type, limits_);
    }
    try {
      static_cast<void>(choose(call));
    } catch (const UsageError& error) {
      throw UsageError(fmt::format(
          "{} (GradientOptions::algorithm, for buckets of up to {} bytes: bucket_bytes and the "
          "largest parameter say how many)",
          error.what(), call.count * size_of(call.type)));
    }
  }
}

std::optional<std::vector<Bucket>> BucketedModel::other_buckets_for(
    std::span<const std::uint32_t> order) const {
  std::vector<Bucket> others = plan_buckets(shapes_, order, limits_);
  if (same_buckets(others, buckets())) return std::nullopt;
  return others;
}

void BucketedModel::form_anew(std::vector<Bucket> buckets) {
  store_.lay_out(std::move(buckets));
  if (store_.owns_any()) ++layout_;
}

Call BucketedModel::all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) const {
  Call call;
  call.collective = Collective::all_reduce;
  call.in = call.out = data;
  call.count = count;
  call.type = type;
  call.op = op;
  call.options.timeout = options_.timeout;
  return call;
}

Call BucketedModel::call_of(std::size_t bucket, ReduceOp op) const {
  const GradientStore::Load& load = store_.load(bucket);
  Call call = all_reduce(load.data, load.count, load.type, op);
  call.options.algorithm = options_.layout_independent ? Algorithm::ring : options_.algorithm;
  return call;
}

std::size_t BucketedModel::bytes_of(std::size_t bucket) const {
  const GradientStore::Load& load = store_.load(bucket);
  return load.count * size_of(load.type);
}

Wrong BucketedModel::wrong_with(std::size_t parameter, const void* gradient, std::size_t count,
                                DataType type) const {
  if (parameter >= parameters_.size()) return Wrong::unknown;
  if (gradient != store_.gradient(parameter) || type != parameters_[parameter].type) {
    return Wrong::pointer;
  }
  return count != parameters_[parameter].count ? Wrong::count : Wrong::nothing;
}

}  // namespace rondo::detail
