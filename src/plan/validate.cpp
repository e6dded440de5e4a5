#include "plan/validate.hpp"

#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"
#include "plan/parts.hpp"

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
    require_counts_to_be_used();
    if (call_.collective == Collective::barrier) {
      if (call_.count != 0) refuse("a barrier has no elements, but `count` is {}", call_.count);
      return;
    }
    for (const std::size_t count : {call_.count, call_.received}) {
      if (count <= std::numeric_limits<std::ptrdiff_t>::max() / size_of(call_.type)) continue;
      refuse("{} elements of {} exceed the address space", count, name(call_.type));
    }
    if (has_root(call_.collective)) require_rank("root", call_.root);
    check_peers();
    check_chunks();
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

  void require_rank(const char* what, int rank) const {
    if (rank < 0 || rank >= size_)
      refuse("{} {} is not a rank; ranks are 0 to {}", what, rank, size_ - 1);
  }

  void check_peers() const {
    if (sends(call_.collective)) require_rank("receiver", call_.to);
    if (receives(call_.collective)) require_rank("sender", call_.from);
    const bool sends_to_itself = sends(call_.collective) && call_.to == rank_;
    const bool receives_from_itself = receives(call_.collective) && call_.from == rank_;
    if (!sends_to_itself && !receives_from_itself) return;
    if (sends_to_itself != receives_from_itself) {
      refuse("a rank exchanges messages with itself only in a sendrecv with `to` and `from` {}",
             rank_);
    }
    if (call_.count != call_.received) {
      refuse("rank {} sends {} elements to itself, and receives {}", rank_, call_.count,
             call_.received);
    }
  }

  void require_counts_to_be_used() const {
    const bool used = call_.collective == Collective::reduce_scatter ||
                      call_.collective == Collective::all_gather;
    if (call_.counts != nullptr && !used) {
      refuse("`counts` is for reduce_scatter and all_gather only");
    }
  }

  void check_chunks() const {
    const auto size = static_cast<std::size_t>(size_);
    if (goes_pairwise(call_.collective) && !is_message(call_.collective) &&
        call_.count % size != 0) {
      refuse("{} elements cannot be cut into {} equal parts, one for each rank", call_.count,
             size_);
    }
    if (call_.counts == nullptr) return;
    std::size_t sum = 0;
    for (std::size_t rank = 0; rank < size; ++rank) {
      if (call_.counts[rank] > call_.count - sum) {
        refuse("the counts of ranks 0 to {} add up to more than the {} elements of the call", rank,
               call_.count);
      }
      sum += call_.counts[rank];
    }
    if (sum != call_.count) {
      refuse("the counts add up to {}, but the call has {} elements", sum, call_.count);
    }
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

  void check_buffers() const {
    const bool reads = reads_input(call_, rank_);
    const bool writes = writes_output(call_, rank_);
    const Range in = input_range(call_, rank_, size_);
    const Range out = output_range(call_, rank_, size_);
    if (reads && in.count > 0 && call_.in == nullptr) {
      refuse("`in` is null, but {} elements are to be read", in.count);
    }
    if (writes && out.count > 0 && call_.out == nullptr) {
      refuse("`out` is null, but {} elements are to be written", out.count);
    }
    if (reads && writes) check_overlap(in, out);
  }

  // A call is in place if each element of `in` is where that element of the vector is in `out`.
  void check_overlap(const Range& in, const Range& out) const {
    const std::uint64_t element = size_of(call_.type);
    const auto in_begin = reinterpret_cast<std::uintptr_t>(call_.in);
    const auto out_begin = reinterpret_cast<std::uintptr_t>(call_.out);
    if (in.count == 0 || out.count == 0) return;
    const bool may_be_in_place =
        call_.collective != Collective::all_to_all && call_.collective != Collective::sendrecv;
    const bool in_place = in_begin - in.offset * element == out_begin - out.offset * element;
    if (may_be_in_place && in_place) return;
    if (in_begin + in.count * element <= out_begin || out_begin + out.count * element <= in_begin) {
      return;
    }
    if (!may_be_in_place) {
      refuse("`in` ({} bytes at {:#x}) and `out` ({} bytes at {:#x}) overlap; pass separate ones",
             in.count * element, in_begin, out.count * element, out_begin);
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
