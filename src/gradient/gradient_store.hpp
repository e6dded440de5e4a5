// Where gradients lie, and where the buckets do that travel: the same place where it can be.
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
  // What travels of a bucket.
  struct Load {
    void* data = nullptr;
    std::size_t count = 0;
    DataType type = DataType::f32;
    bool in_place = false;  // the gradients themselves
  };

  // Borrows the parameters, which must outlive it.
  GradientStore(const std::vector<Parameter>& parameters, WireType wire,
                std::unique_ptr<BucketMemory> memory);

  // Forms the buckets' memory; gradients of the store's own move into it, with what is in them.
  void lay_out(std::vector<Bucket> buckets);

  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  [[nodiscard]] std::byte* gradient(std::size_t parameter) const { return gradients_[parameter]; }
  // Throws UsageError for another type, or where there is no such parameter.
  [[nodiscard]] std::byte* gradient_of_type(std::size_t parameter, DataType type) const;
  [[nodiscard]] bool owns_any() const { return owned_bytes_ > 0; }
  [[nodiscard]] const Load& load(std::size_t bucket) const { return loads_[bucket]; }

  void clear(std::size_t parameter);
  // Gradients, times `factor`, into what travels; and back.
  void pack(std::size_t bucket, double factor);
  void unpack(std::size_t bucket);

 private:
  [[nodiscard]] DataType wire_type(DataType type) const;
  [[nodiscard]] std::vector<std::byte*> place_owned(std::byte* memory) const;
  // Where it lies if its gradients are side by side in memory; else null.
  [[nodiscard]] std::byte* whole_bucket(const Bucket& bucket) const;
  template <class Visit>
  void for_each_piece(const Bucket& bucket, Visit&& visit) const;

  const std::vector<Parameter>& parameters_;
  WireType wire_;
  std::vector<Bucket> buckets_;
  std::vector<std::byte*> gradients_;  // by parameter
  std::size_t owned_bytes_ = 0;
  std::unique_ptr<BucketMemory> memory_;
  BucketMemory::Owner owned_;
  std::vector<BucketMemory::Owner> buffers_;  // by bucket; null for those in place
  std::vector<Load> loads_;
};

}  // namespace rondo::detail
