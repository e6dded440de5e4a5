#include "tensors.hpp"

#include <ATen/ATen.h>

namespace rondo::torch_backend {

DataType type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return DataType::f32;
    case at::kDouble:
      return DataType::f64;
    case at::kHalf:
      return DataType::f16;
    case at::kBFloat16:
      return DataType::bf16;
    case at::kChar:
      return DataType::i8;
    case at::kByte:
      return DataType::u8;
    case at::kShort:
      return DataType::i16;
    case at::kInt:
      return DataType::i32;
    case at::kLong:
      return DataType::i64;
    case at::kBool:
      return DataType::boolean;
    case at::kComplexFloat:
      return DataType::c64;
    case at::kComplexDouble:
      return DataType::c128;
#if !defined(TORCH_OF_1)
    case at::kUInt16:
      return DataType::u16;
    case at::kUInt32:
      return DataType::u32;
    case at::kUInt64:
      return DataType::u64;
#endif
    default:
      TORCH_CHECK(false, "rondo: cannot reduce tensors of type ", tensor.scalar_type());
  }
}

ReduceOp op_of(const c10d::ReduceOp& op) {
  switch (static_cast<c10d::ReduceOp::RedOpType>(op)) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::sum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::avg;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::prod;
    case c10d::ReduceOp::MIN:
      return ReduceOp::min;
    case c10d::ReduceOp::MAX:
      return ReduceOp::max;
    case c10d::ReduceOp::BAND:
      return ReduceOp::bit_and;
    case c10d::ReduceOp::BOR:
      return ReduceOp::bit_or;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::bit_xor;
    default:
      TORCH_CHECK(false, "rondo: this reduction is not supported for tensors in host memory");
  }
}

void require_host_memory(const at::Tensor& tensor, const char* call) {
  TORCH_CHECK(tensor.device().is_cpu(), "rondo: ", call, ": a tensor is on ", tensor.device(),
              ", not in host memory");
  TORCH_CHECK(!tensor.is_sparse(), "rondo: ", call, ": a tensor is sparse");
}

const at::Tensor& only(const Tensors& tensors, const char* call) {
  TORCH_CHECK(tensors.size() == 1, "rondo: ", call, " takes one tensor, not ", tensors.size());
  require_host_memory(tensors[0], call);
  return tensors[0];
}

// The lists of one tensor for each rank, of which there is one.
const Tensors& only(const TensorLists& lists, std::size_t ranks, const char* call) {
  TORCH_CHECK(lists.size() == 1, "rondo: ", call, " takes one list of tensors, not ", lists.size());
  TORCH_CHECK(lists[0].size() == ranks, "rondo: ", call, " takes ", ranks,
              " tensors, one for each rank, not ", lists[0].size());
  for (const at::Tensor& tensor : lists[0]) require_host_memory(tensor, call);
  return lists[0];
}

void require_same_sizes(const Tensors& tensors, const at::Tensor& as, const char* call) {
  for (const at::Tensor& tensor : tensors) {
    TORCH_CHECK(tensor.numel() == as.numel() && tensor.scalar_type() == as.scalar_type(),
                "rondo: ", call, ": tensors of different sizes or types");
  }
}

std::size_t elements(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.numel()); }
std::size_t bytes(const at::Tensor& tensor) { return static_cast<std::size_t>(tensor.nbytes()); }

// Tensors one after the other as elements of the first one's type.
at::Tensor joined(const Tensors& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& tensor : tensors) flat.push_back(tensor.contiguous().view({-1}));
  return at::cat(flat);
}
void copy_parts(const at::Tensor& flat, const Tensors& to) {
  std::int64_t at = 0;
  for (const at::Tensor& tensor : to) {
    tensor.copy_(flat.narrow(0, at, tensor.numel()).view(tensor.sizes()));
    at += tensor.numel();
  }
}
at::Tensor room_for(const Tensors& tensors) {
  std::int64_t count = 0;
  for (const at::Tensor& tensor : tensors) count += tensor.numel();
  return at::empty({count}, tensors.at(0).options());
}

// A call that moves bytes.
Call moving(Collective collective, const void* in, void* out, std::size_t bytes, int root,
            const CallOptions& options) {
  Call call;
  call.collective = collective;
  call.type = DataType::u8;
  call.in = in;
  call.out = out;
  call.count = bytes;
  call.root = root;
  call.options = options;
  return call;
}

// How many bytes go to, or come from, each rank: sizes are rows of the tensor, or equal.
std::vector<std::size_t> parts_of(const at::Tensor& tensor, const std::vector<int64_t>& rows,
                                  std::size_t ranks) {
  std::vector<std::size_t> parts;
  const std::size_t all = bytes(tensor);
  if (rows.empty()) {
    TORCH_CHECK(tensor.dim() > 0 && tensor.size(0) % static_cast<int64_t>(ranks) == 0,
                "rondo: a tensor of sizes ", tensor.sizes(), " cannot be cut into ", ranks,
                " equal parts by its rows");
    parts.assign(ranks, all / ranks);
    return parts;
  }
  TORCH_CHECK(rows.size() == ranks, "rondo: there are ", rows.size(), " split sizes for ", ranks,
              " ranks");
  const std::int64_t first = tensor.dim() > 0 ? tensor.size(0) : 1;
  const std::size_t row = first > 0 ? all / static_cast<std::size_t>(first) : 0;
  std::int64_t sum = 0;
  for (const std::int64_t count : rows) {
    sum += count;
    parts.push_back(static_cast<std::size_t>(count) * row);
  }
  TORCH_CHECK(sum == first, "rondo: split sizes add up to ", sum, ", and the tensor has ", first,
              " rows");
  return parts;
}

void exchange(Communicator& comm, const void* in, const std::vector<std::size_t>& sent, void* out,
              const std::vector<std::size_t>& received, const CallOptions& options) {
  const auto sum = [](const std::vector<std::size_t>& parts) {
    std::size_t all = 0;
    for (const std::size_t part : parts) all += part;
    return all;
  };
  Call call = moving(Collective::all_to_all, in, out, sum(sent), 0, options);
  call.counts = sent.data();
  call.received_counts = received.data();
  call.received = sum(received);
  comm.run(call);
}

void require_gathered(const at::Tensor& output, const at::Tensor& input, int ranks) {
  require_host_memory(output, "all_gather_into_tensor");
  require_host_memory(input, "all_gather_into_tensor");
  TORCH_CHECK(
      output.scalar_type() == input.scalar_type() && output.numel() == input.numel() * ranks,
      "rondo: all_gather_into_tensor: the output must have the input's type, and its size times "
      "the number of ranks");
}
void gather_to_all(Communicator& comm, const at::Tensor& output, const at::Tensor& input,
                   const CallOptions& with) {
  const Dense own(input);
  const Dense all(output);
  comm.run(moving(Collective::all_gather, own.data(), all.data(), bytes(output), 0, with));
  all.copy_back();
}

void require_scattered(const at::Tensor& output, const at::Tensor& input, int ranks) {
  require_host_memory(output, "reduce_scatter_tensor");
  require_host_memory(input, "reduce_scatter_tensor");
  TORCH_CHECK(
      output.scalar_type() == input.scalar_type() && input.numel() == output.numel() * ranks,
      "rondo: reduce_scatter_tensor: the input must have the output's type, and its size times "
      "the number of ranks");
}
void scatter_reduced(Communicator& comm, const at::Tensor& output, const at::Tensor& input,
                     ReduceOp op, const CallOptions& with) {
  const Dense all(input);
  const Dense own(output);
  Call call;
  call.collective = Collective::reduce_scatter;
  call.type = type_of(output);
  call.op = op;
  call.count = elements(input);
  call.in = all.data();
  call.out = own.data();
  call.options = with;
  comm.run(call);
  own.copy_back();
}

}  // namespace rondo::torch_backend
