// What a reducer was made with, and the buckets that are formed of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <rondo/gradients.hpp>

#include "gradient/bucket_plan.hpp"
#include "gradient/complaint.hpp"
#include "gradient/gradient_store.hpp"

namespace rondo::detail {

class BucketedModel {
 public:
  BucketedModel(std::vector<Parameter> parameters, GradientOptions options,
                std::unique_ptr<BucketMemory> memory);
  BucketedModel(const BucketedModel&) = delete;
  BucketedModel& operator=(const BucketedModel&) = delete;
  ~BucketedModel() = default;

  [[nodiscard]] const std::vector<Parameter>& parameters() const { return parameters_; }
  [[nodiscard]] const GradientOptions& options() const { return options_; }
  [[nodiscard]] std::span<const ParameterShape> shapes() const { return shapes_; }
  [[nodiscard]] GradientStore& store() { return store_; }
  [[nodiscard]] const GradientStore& store() const { return store_; }
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return store_.buckets(); }
  [[nodiscard]] const BucketLimits& limits() const { return limits_; }
  // How often the gradients that the reducer owns have moved.
  [[nodiscard]] int layout() const { return layout_; }

  // Forms the first buckets: in the reverse order of the parameters.
  void form(const BucketLimits& limits);
  // Throws UsageError if `choose`, which asks a communicator for a call's algorithm, refuses the
  // call of a bucket, or of a larger one that may result when buckets are formed anew.
  void require_algorithm(const std::function<Algorithm(const Call&)>& choose) const;

  // Whether buckets are still to be formed anew, in the order in which rank 0's gradients come.
  [[nodiscard]] bool follows_arrival() const { return follows_arrival_; }
  void keep_order() { follows_arrival_ = false; }
  // The buckets of that order; nothing if they are equal to the present ones.
  [[nodiscard]] std::optional<std::vector<Bucket>> other_buckets_for(
      std::span<const std::uint32_t> order) const;
  void form_anew(std::vector<Bucket> buckets);

  // An all_reduce in place, with the options' timeout.
  [[nodiscard]] Call all_reduce(void* data, std::size_t count, DataType type, ReduceOp op) const;
  // The all_reduce of a bucket.
  [[nodiscard]] Call call_of(std::size_t bucket, ReduceOp op) const;
  [[nodiscard]] std::size_t bytes_of(std::size_t bucket) const;

  // What is wrong with memory that a caller marks as this parameter's gradient.
  [[nodiscard]] Wrong wrong_with(std::size_t parameter, const void* gradient, std::size_t count,
                                 DataType type) const;

 private:
  std::vector<Parameter> parameters_;
  GradientOptions options_;
  std::vector<ParameterShape> shapes_;
  BucketLimits limits_;
  GradientStore store_;
  bool follows_arrival_;
  int layout_ = 0;
};

}  // namespace rondo::detail
