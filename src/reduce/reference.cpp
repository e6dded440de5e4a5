#include "reduce/dispatch.hpp"
#include "reduce/functors.hpp"
#include "reduce/scalar_loop.hpp"

namespace rondo::detail {
namespace {

template <class T>
struct ReferenceKernels {
  template <class Op>
  static void run(std::byte* dst, std::byte* also, const std::byte* a, const std::byte* b,
                  std::size_t count, int /*ranks*/) {
    scalar_loop<T>(dst, also, a, b, count, Op{});
  }
  static constexpr ReduceFunction sum = run<Sum<T>>;
  static constexpr ReduceFunction prod = run<Prod<T>>;
  static constexpr ReduceFunction min = run<Min<T>>;
  static constexpr ReduceFunction max = run<Max<T>>;
  static void sum_then_divide(std::byte* dst, std::byte* also, const std::byte* a,
                              const std::byte* b, std::size_t count, int ranks) {
    scalar_loop<T>(dst, also, a, b, count, SumThenDivide<T>{static_cast<ArithmeticOf<T>>(ranks)});
  }
};

}  // namespace

ReduceKernel reference_kernel(DataType type, ReduceOp op) {
  return select_kernel<ReferenceKernels>(type, op);
}

}  // namespace rondo::detail
