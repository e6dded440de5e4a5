#include <algorithm>
#include <limits>

#include "base/with_type.hpp"
#include "cuda/api/handles.hpp"
#include "cuda/kernels/kernels.hpp"
#include "cuda/kernels/launch.hpp"
#include "cuda/protocol/block.hpp"
#include "fifo/fifo.hpp"

namespace rondo::detail::gpu::kernels {
namespace {

// The dynamic shared memory that a kernel of the protocol needs holds the FIFO ends of a channel,
// and where each rank's buffers are.
std::size_t shared_bytes(int ranks) {
  return static_cast<std::size_t>(ranks) *
         (sizeof(SendEnd) + sizeof(RecvEnd) + sizeof(RankBuffers));
}

constexpr int kThreads = 256;  // of the kernels that are not the protocol's

const void* function_of(const Kernel& kernel) {
  return with_common_type(kernel.type, [&kernel](auto tag) {
    using T = typename decltype(tag)::Type;
    return kernel_for<T>(kernel.op, kernel.kind);
  });
}

template <class Visitor>
void for_each_kernel(Visitor&& visit) {
  for (int type = 0; type < kDataTypeCount; ++type) {
    for (int op = 0; op < kReduceOpCount; ++op) {
      Kernel kernel{static_cast<DataType>(type), static_cast<ReduceOp>(op)};
      if (!is_common(kernel.type) || !is_common(kernel.op)) continue;
      if (!supports(kernel.type, kernel.op)) continue;
      for (int kind = 0; kind < kKernelKinds; ++kind) {
        kernel.kind = static_cast<KernelKind>(kind);
        visit(function_of(kernel));
      }
    }
  }
}

}  // namespace

void load_all() {
  for_each_kernel(api::load);
  api::load(write_pattern_kernel());
  api::load(count_wrong_kernel());
  api::load(write_words_kernel());
  for (const DataType type : {DataType::f32, DataType::f64, DataType::f16, DataType::bf16}) {
    api::load(scale_kernel(type, type));
    if (size_of(type) != 2) continue;
    api::load(scale_kernel(type, DataType::f32));
    api::load(scale_kernel(DataType::f32, type));
  }
}

int resident_blocks(int threads, int ranks) {
  int fewest = std::numeric_limits<int>::max();
  for_each_kernel([&](const void* kernel) {
    fewest = std::min(fewest, api::blocks_at_once(kernel, threads, shared_bytes(ranks)));
  });
  return fewest * api::facts_of(api::current_device()).multiprocessors;
}

void start(const Kernel& kernel, int blocks, int threads, const KernelArguments& arguments,
           api::Stream stream) {
  void* pointers[] = {const_cast<KernelArguments*>(&arguments)};
  api::launch(function_of(kernel), static_cast<std::size_t>(blocks), threads,
              shared_bytes(arguments.rank.size), pointers, stream);
}

// The words travel in the kernel's arguments: an asynchronous copy would need them to stay where
// they are until it, or the last replay of its graph, has ended.
std::uint64_t write_words(std::uint64_t* to, std::span<const std::uint64_t> words,
                          api::Stream stream) {
  for (std::size_t done = 0; done < words.size(); done += kWordsAtOnce) {
    WordsToWrite some;
    some.to = to + done;
    some.count = std::min(kWordsAtOnce, words.size() - done);
    std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(done), some.count, some.words);
    void* arguments[] = {&some};
    api::launch(write_words_kernel(), 1, kThreads, 0, arguments, stream);
  }
  return (words.size() + kWordsAtOnce - 1) / kWordsAtOnce;
}

void scale_async(void* to, DataType to_type, const void* from, DataType from_type,
                 std::size_t count, double factor, api::Stream stream) {
  if (count == 0 || (to == from && factor == 1)) return;
  if (to_type == from_type && factor == 1) {
    api::copy_async(to, from, count * size_of(to_type), stream);
    return;
  }
  constexpr std::size_t kMostBlocks = 1024;
  std::uint64_t elements = count;
  void* arguments[] = {&to, &from, &elements, &factor};
  const std::size_t blocks = std::min(kMostBlocks, (count + kThreads - 1) / kThreads);
  api::launch(scale_kernel(to_type, from_type), blocks, kThreads, 0, arguments, stream);
}

void write_pattern(void* memory, std::size_t words, std::uint64_t seed, api::Stream stream) {
  std::uint64_t count = words;
  void* arguments[] = {&memory, &count, &seed};
  api::launch(write_pattern_kernel(), 1, kThreads, 0, arguments, stream);
}

void count_wrong_words(const void* memory, std::size_t words, std::uint64_t seed,
                       std::uint64_t* wrong, api::Stream stream) {
  std::uint64_t count = words;
  void* arguments[] = {&memory, &count, &seed, &wrong};
  api::launch(count_wrong_kernel(), 1, kThreads, 0, arguments, stream);
}

}  // namespace rondo::detail::gpu::kernels
