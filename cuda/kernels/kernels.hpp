// The kernels, as the host starts them. One object file for each element type (kernels.cu).
#pragma once

#include <cstddef>
#include <cstdint>

#include <rondo/types.hpp>

#include "cuda/kernels/kernel.hpp"

namespace rondo::detail::gpu {

// The kernel of an operation, for cudaLaunchKernel; its one argument is a KernelArguments.
template <class T>
const void* kernel_for(ReduceOp op, KernelKind kind);
// Each is defined in the object file of its type.
template <>
const void* kernel_for<float>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<double>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<Float16>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<BFloat16>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<std::int8_t>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<std::uint8_t>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<std::int32_t>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<std::uint32_t>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<std::int64_t>(ReduceOp op, KernelKind kind);
template <>
const void* kernel_for<std::uint64_t>(ReduceOp op, KernelKind kind);

inline constexpr std::size_t kWordsAtOnce = 256;
struct WordsToWrite {
  std::uint64_t* to = nullptr;
  std::size_t count = 0;
  std::uint64_t words[kWordsAtOnce];
};
// Its argument: WordsToWrite.
const void* write_words_kernel();

// Their arguments: (words, count, seed); and (words, count, seed, how many differ).
const void* write_pattern_kernel();
const void* count_wrong_kernel();

// Its arguments: (to, from, count, factor), between the pairs of types that reduce/scale.hpp names.
const void* scale_kernel(DataType to, DataType from);

}  // namespace rondo::detail::gpu
