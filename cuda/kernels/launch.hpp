// Starts kernels by what they do. Three files implement it, as api/api.hpp: launch_runtime.cpp,
// launch_absent.cpp and tests/cuda/stand_in.cpp. All throw CudaError.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <rondo/types.hpp>

#include "cuda/api/api.hpp"
#include "cuda/kernels/kernel.hpp"
#include "cuda/protocol/arguments.hpp"

namespace rondo::detail::gpu::kernels {

// Loads all kernels for the device in use.
void load_all();
// How many blocks of any of the protocol's kernels the device in use runs at once.
int resident_blocks(int threads, int ranks);
void start(const Kernel& kernel, int blocks, int threads, const KernelArguments& arguments,
           api::Stream stream);

// Writes words to the device's memory: every replay of a captured graph writes the same. Returns
// how many kernels it starts.
std::uint64_t write_words(std::uint64_t* to, std::span<const std::uint64_t> words,
                          api::Stream stream);

// As reduce/scale.hpp says.
void scale_async(void* to, DataType to_type, const void* from, DataType from_type,
                 std::size_t count, double factor, api::Stream stream);

// Writes a pattern that depends on `seed`, as the protocol's kernels write; and adds to `*wrong`,
// which is memory of the device in use, how many words differ from it.
void write_pattern(void* memory, std::size_t words, std::uint64_t seed, api::Stream stream);
void count_wrong_words(const void* memory, std::size_t words, std::uint64_t seed,
                       std::uint64_t* wrong, api::Stream stream);

}  // namespace rondo::detail::gpu::kernels
