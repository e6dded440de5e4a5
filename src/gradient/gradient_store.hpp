// Where gradients lie, and where the data lie that are sent for each bucket: the same memory if
// possible.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <rondo/gradients.hpp>

#include "gradient/bucket_memory.hpp"
#include "gradient/bucket_plan.hpp"

namespace rondo::detail {

class GradientStore {
 public:
  // The data that are sent for a bucket.
  struct Load {
    void* data = nullptr;
    std::size_t count = 0;
    DataType type = DataType::f32;
    bool in_place = false;  // the gradients themselves
  };

  // Borrows the parameters, which must outlive it.
  GradientStore(const std::vector<Parameter>& parameters, WireType wire,
                std::unique_ptr<BucketMemory> memory);

  // Collective: allocates the buckets' memory; gradients that the store owns move to new memory
  // with their contents.
  void lay_out(std::vector<Bucket> buckets);

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  [[nodiscard]] std::byte* gradient(std::size_t parameter) const { return gradients_[parameter]; }
  // Throws UsageError for another type, or where there is no such parameter.
  [[nodiscard]] std::byte* gradient_of_type(std::size_t parameter, DataType type) const;
  [[nodiscard]] bool owns_any() const { return owned_bytes_ > 0; }
  [[nodiscard]] const Load& load(std::size_t bucket) const { return loads_[bucket]; }

  void clear(std::size_t parameter);
  // pack() writes the gradients, times `factor`, into the bucket's load; unpack() writes the load
  // back to them.
  void pack(std::size_t bucket, double factor);
  void unpack(std::size_t bucket);

 private:
  [[nodiscard]] DataType wire_type(DataType type) const;
  [[nodiscard]] std::vector<std::byte*> place_owned(const std::vector<Bucket>& buckets,
                                                    std::byte* memory) const;
  // The gradient that comes first in the bucket.
  [[nodiscard]] std::byte* first_of(const Bucket& bucket,
                                    const std::vector<std::byte*>& gradients) const;
  // Whether the bucket can be sent from where its gradients are: side by side, in the type that is
  // sent.
  [[nodiscard]] bool goes_in_place(const Bucket& bucket) const;
  template <class Visit>
  void for_each_piece(const Bucket& bucket, Visit&& visit) const;

  const std::vector<Parameter>& parameters_;
  WireType wire_;
  std::vector<Bucket> buckets_;
  std::vector<std::byte*> gradients_;  // by parameter
  std::size_t owned_bytes_ = 0;
  std::unique_ptr<BucketMemory> memory_;
  // The gradients that the store owns, then the loads that are not in place.
  BucketMemory::Owner block_;
  std::vector<Load> loads_;
};

}  // namespace rondo::detail
