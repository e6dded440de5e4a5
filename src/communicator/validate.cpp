#include "communicator/validate.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rondo/chunk.hpp>
#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"

namespace rondo::detail {
namespace {

class Checker {
 public:
  Checker(const Call& call, int rank, int size) : call_(call), rank_(rank), size_(size) {}

  void check() const {
    check_enumerators();
    if (call_.options.timeout && call_.options.timeout->count() <= 0) {
      refuse("the timeout is {} ms; it must be above 0", call_.options.timeout->count());
    }
    if (call_.collective == Collective::barrier) {
      if (call_.count != 0) refuse("a barrier has no elements, but `count` is {}", call_.count);
      return;
    }
    if (call_.count > std::numeric_limits<std::ptrdiff_t>::max() / size_of(call_.type)) {
      refuse("{} elements of {} exceed the address space", call_.count, name(call_.type));
    }
    if (has_root(call_.collective) && (call_.root < 0 || call_.root >= size_)) {
      refuse("root {} is not a rank; ranks are 0 to {}", call_.root, size_ - 1);
    }
    if (reduces(call_.collective) && !supports(call_.type, call_.op)) {
      refuse("{} is not defined for {}; use sum and divide, or a floating-point type",
             name(call_.op), name(call_.type));
    }
    check_buffers();
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw UsageError(fmt::format("rank {}: {}: {}", rank_, name(call_.collective),
                                 fmt::format(format, std::forward<Args>(args)...)));
  }

  void check_enumerators() const {
    if (static_cast<int>(call_.collective) >= kCollectiveCount) {
      throw UsageError(fmt::format("rank {}: {} is not a Collective", rank_,
                                   static_cast<int>(call_.collective)));
    }
    if (static_cast<int>(call_.type) >= kDataTypeCount) {
      refuse("{} is not a DataType", static_cast<int>(call_.type));
    }
    if (static_cast<int>(call_.op) >= kReduceOpCount) {
      refuse("{} is not a ReduceOp", static_cast<int>(call_.op));
    }
    if (call_.options.algorithm && static_cast<int>(*call_.options.algorithm) >= kAlgorithmCount) {
      refuse("{} is not an Algorithm", static_cast<int>(*call_.options.algorithm));
    }
  }

  [[nodiscard]] Range own_chunk() const {
    return chunk_range(call_.count, static_cast<std::uint64_t>(size_),
                       static_cast<std::uint64_t>(rank_));
  }

  void check_buffers() const {
    const bool root = rank_ == call_.root;
    const bool reads = call_.collective != Collective::broadcast || root;
    const bool writes = call_.collective != Collective::reduce || root;
    const Range whole{0, call_.count};
    const Range in = call_.collective == Collective::all_gather ? own_chunk() : whole;
    const Range out = call_.collective == Collective::reduce_scatter ? own_chunk() : whole;
    if (reads && in.count > 0 && call_.in == nullptr) {
      refuse("`in` is null, but {} elements are to be read", in.count);
    }
    if (writes && out.count > 0 && call_.out == nullptr) {
      refuse("`out` is null, but {} elements are to be written", out.count);
    }
    if (reads && writes) check_overlap(in, out);
  }

  // In place means: each element of `in` is where that element of the vector is in `out`.
  void check_overlap(const Range& in, const Range& out) const {
    const std::uint64_t element = size_of(call_.type);
    const auto in_begin = reinterpret_cast<std::uintptr_t>(call_.in);
    const auto out_begin = reinterpret_cast<std::uintptr_t>(call_.out);
    if (in.count == 0 || out.count == 0) return;
    if (in_begin - in.offset * element == out_begin - out.offset * element) return;
    if (in_begin + in.count * element <= out_begin || out_begin + out.count * element <= in_begin) {
      return;
    }
    refuse(
        "`in` ({} bytes at {:#x}) and `out` ({} bytes at {:#x}) overlap without being in place; "
        "pass the same buffer, with a rank's own chunk at its place in it, or separate ones",
        in.count * element, in_begin, out.count * element, out_begin);
  }

  const Call& call_;
  int rank_;
  int size_;
};

}  // namespace

void validate(const Call& call, int rank, int size) { Checker(call, rank, size).check(); }

}  // namespace rondo::detail
