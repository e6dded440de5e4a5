// Tensors as arguments of Rondo's calls.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <rondo/communicator.hpp>

#include "torch_types.hpp"

namespace rondo::torch_backend {

// What torch calls a type and a reduction, in Rondo. All functions here throw c10::Error for what a
// call cannot take.
DataType type_of(const at::Tensor& tensor);

ReduceOp op_of(const c10d::ReduceOp& op);

void require_host_memory(const at::Tensor& tensor, const char* call);

const at::Tensor& only(const Tensors& tensors, const char* call);

// The lists of one tensor for each rank, of which there is one.
const Tensors& only(const TensorLists& lists, std::size_t ranks, const char* call);

void require_same_sizes(const Tensors& tensors, const at::Tensor& as, const char* call);

std::size_t elements(const at::Tensor& tensor);

std::size_t bytes(const at::Tensor& tensor);

// A tensor whose elements lie side by side: itself, or a copy, from which they are copied back.
class Dense {
 public:
  explicit Dense(at::Tensor tensor) : tensor_(std::move(tensor)), dense_(tensor_.contiguous()) {}
  [[nodiscard]] void* data() const { return dense_.data_ptr(); }
  void copy_back() const {
    if (!dense_.is_same(tensor_)) tensor_.copy_(dense_);
  }

 private:
  at::Tensor tensor_;
  at::Tensor dense_;
};

// Tensors one after the other as elements of the first one's type.
at::Tensor joined(const Tensors& tensors);

// The other way round.
void copy_parts(const at::Tensor& flat, const Tensors& to);

// Room for their elements.
at::Tensor room_for(const Tensors& tensors);

// A call that moves bytes.
Call moving(Collective collective, const void* in, void* out, std::size_t bytes, int root,
            const CallOptions& options);

// How many bytes go to, or come from, each rank: sizes are rows of the tensor, or equal.
std::vector<std::size_t> parts_of(const at::Tensor& tensor, const std::vector<int64_t>& rows,
                                  std::size_t ranks);

// An all_to_all of parts of so many bytes.
void exchange(Communicator& comm, const void* in, const std::vector<std::size_t>& sent, void* out,
              const std::vector<std::size_t>& received, const CallOptions& options);

void require_gathered(const at::Tensor& output, const at::Tensor& input, int ranks);

void gather_to_all(Communicator& comm, const at::Tensor& output, const at::Tensor& input,
                   const CallOptions& with);

void require_scattered(const at::Tensor& output, const at::Tensor& input, int ranks);

void scatter_reduced(Communicator& comm, const at::Tensor& output, const at::Tensor& input,
                     ReduceOp op, const CallOptions& with);

}  // namespace rondo::torch_backend
