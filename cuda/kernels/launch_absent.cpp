// A build without CUDA: there is no device, and so no kernel is ever asked for.
#include <rondo/errors.hpp>

#include "cuda/kernels/launch.hpp"

namespace rondo::detail::gpu::kernels {
namespace {

[[noreturn]] void refuse() { throw CudaError(api::why_no_device()); }

}  // namespace

void load_all() { refuse(); }
int resident_blocks(int /*threads*/, int /*ranks*/) { refuse(); }
void start(const Kernel& /*kernel*/, int /*blocks*/, int /*threads*/,
           const KernelArguments& /*arguments*/, api::Stream /*stream*/) {
  refuse();
}
std::uint64_t write_words(std::uint64_t* /*to*/, std::span<const std::uint64_t> /*words*/,
                          api::Stream /*stream*/) {
  refuse();
}
void scale_async(void* /*to*/, DataType /*to_type*/, const void* /*from*/, DataType /*from_type*/,
                 std::size_t /*count*/, double /*factor*/, api::Stream /*stream*/) {
  refuse();
}
void write_pattern(void* /*memory*/, std::size_t /*words*/, std::uint64_t /*seed*/,
                   api::Stream /*stream*/) {
  refuse();
}
void count_wrong_words(const void* /*memory*/, std::size_t /*words*/, std::uint64_t /*seed*/,
                       std::uint64_t* /*wrong*/, api::Stream /*stream*/) {
  refuse();
}

}  // namespace rondo::detail::gpu::kernels
