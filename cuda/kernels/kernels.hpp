// The kernels, as the host starts them. One object file for each element type (kernels.cu).
#pragma once

#include <cstddef>
#include <cstdint>

#include <rondo/types.hpp>

namespace rondo::detail::gpu {

// Bytes of dynamic shared memory that a kernel needs: room for the FIFO ends of a channel.
std::size_t shared_bytes(int ranks);

// The kernel of an operation, for cudaLaunchKernel; its one argument is a KernelArguments.
template <class T>
const void* kernel_for(ReduceOp op, bool one_shot);

// Their arguments: (words, count, seed); and (words, count, seed, how many differ).
const void* write_pattern_kernel();
const void* count_wrong_kernel();

// Its arguments: (to, from, count, factor), between the pairs of types that reduce/scale.hpp names.
const void* scale_kernel(DataType to, DataType from);

}  // namespace rondo::detail::gpu
