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

// A call that is checked on one rank.
struct CheckedCall {
  const Call& call;
  int rank;
  int size;

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    throw UsageError(fmt::format("rank {}: {}: {}", rank, name(call.collective),
                                 fmt::format(format, std::forward<Args>(args)...)));
  }
};

void require_rank(const CheckedCall& c, const char* what, int rank) {
  if (rank < 0 || rank >= c.size)
    c.refuse("{} {} is not a rank; ranks are 0 to {}", what, rank, c.size - 1);
}

void check_peers(const CheckedCall& c) {
  if (sends(c.call.collective)) require_rank(c, "receiver", c.call.to);
  if (receives(c.call.collective)) require_rank(c, "sender", c.call.from);
  const bool sends_to_itself = sends(c.call.collective) && c.call.to == c.rank;
  const bool receives_from_itself = receives(c.call.collective) && c.call.from == c.rank;
  if (!sends_to_itself && !receives_from_itself) return;
  if (sends_to_itself != receives_from_itself) {
    c.refuse("a rank exchanges messages with itself only in a sendrecv with `to` and `from` {}",
             c.rank);
  }
  if (c.call.count != c.call.received) {
    c.refuse("rank {} sends {} elements to itself, and receives {}", c.rank, c.call.count,
             c.call.received);
  }
}

void require_counts_to_be_used(const CheckedCall& c) {
  const Collective collective = c.call.collective;
  const bool used = collective == Collective::reduce_scatter ||
                    collective == Collective::all_gather || collective == Collective::gather ||
                    collective == Collective::scatter || collective == Collective::all_to_all;
  if (c.call.counts != nullptr && !used) {
    c.refuse("`counts` is for collectives in which each rank has a chunk of its own");
  }
  const bool both = c.call.counts != nullptr && collective == Collective::all_to_all;
  if ((c.call.received_counts != nullptr) != both) {
    c.refuse("`received_counts` is for all_to_all with `counts`, and needed there");
  }
}

void check_reduction(const CheckedCall& c) {
  if (!reduces(c.call.collective)) {
    c.refuse("a UserReduction is for all_reduce, reduce_scatter and reduce");
  }
  if (!c.call.reduction->combine) c.refuse("the UserReduction has no function");
  if (c.call.reduction->element_bytes == 0) {
    c.refuse("the UserReduction has elements of 0 bytes");
  }
}

// `sum`: what the counts must add up to.
void check_counts(const CheckedCall& c, const std::size_t* counts, const char* what,
                  std::size_t sum) {
  std::size_t added = 0;
  for (int rank = 0; rank < c.size; ++rank) {
    if (counts[rank] > sum - added) {
      c.refuse("the {} of ranks 0 to {} add up to more than the {} elements of the call", what,
               rank, sum);
    }
    added += counts[rank];
  }
  if (added != sum) c.refuse("the {} add up to {}, but the call has {} elements", what, added, sum);
}

void check_chunks(const CheckedCall& c) {
  const auto size = static_cast<std::size_t>(c.size);
  // gather, scatter and all_to_all
  const bool cuts_equally = goes_pairwise(c.call.collective) && !is_message(c.call.collective) &&
                            c.call.counts == nullptr;
  if (cuts_equally && c.call.count % size != 0) {
    c.refuse("{} elements cannot be cut into {} equal parts, one for each rank", c.call.count,
             c.size);
  }
  if (c.call.counts == nullptr) return;
  check_counts(c, c.call.counts, "counts", c.call.count);
  if (c.call.received_counts == nullptr) return;
  check_counts(c, c.call.received_counts, "received counts", c.call.received);
  if (c.call.counts[c.rank] != c.call.received_counts[c.rank]) {
    c.refuse("rank {} sends {} elements to itself, and receives {}", c.rank, c.call.counts[c.rank],
             c.call.received_counts[c.rank]);
  }
}

void check_enumerators(const CheckedCall& c) {
  if (static_cast<int>(c.call.collective) >= kCollectiveCount) {
    throw UsageError(fmt::format("rank {}: {} is not a Collective", c.rank,
                                 static_cast<int>(c.call.collective)));
  }
  if (static_cast<int>(c.call.type) >= kDataTypeCount) {
    c.refuse("{} is not a DataType", static_cast<int>(c.call.type));
  }
  if (static_cast<int>(c.call.op) >= kReduceOpCount) {
    c.refuse("{} is not a ReduceOp", static_cast<int>(c.call.op));
  }
  if (c.call.options.algorithm && static_cast<int>(*c.call.options.algorithm) >= kAlgorithmCount) {
    c.refuse("{} is not an Algorithm", static_cast<int>(*c.call.options.algorithm));
  }
}

// A call is in place if each element of `in` is where that element of the vector is in `out`.
void check_overlap(const CheckedCall& c, const Range& in, const Range& out) {
  const std::uint64_t element = element_bytes(c.call);
  const auto in_begin = reinterpret_cast<std::uintptr_t>(c.call.in);
  const auto out_begin = reinterpret_cast<std::uintptr_t>(c.call.out);
  if (in.count == 0 || out.count == 0) return;
  const bool may_be_in_place =
      c.call.collective != Collective::all_to_all && c.call.collective != Collective::sendrecv;
  const bool in_place = in_begin - in.offset * element == out_begin - out.offset * element;
  if (may_be_in_place && in_place) return;
  if (in_begin + in.count * element <= out_begin || out_begin + out.count * element <= in_begin) {
    return;
  }
  if (!may_be_in_place) {
    c.refuse("`in` ({} bytes at {:#x}) and `out` ({} bytes at {:#x}) overlap; pass separate ones",
             in.count * element, in_begin, out.count * element, out_begin);
  }
  c.refuse(
      "`in` ({} bytes at {:#x}) and `out` ({} bytes at {:#x}) overlap without being in place; "
      "pass the same buffer, with a rank's own chunk at its place in it, or separate ones",
      in.count * element, in_begin, out.count * element, out_begin);
}

void check_buffers(const CheckedCall& c) {
  const bool reads = reads_input(c.call, c.rank);
  const bool writes = writes_output(c.call, c.rank);
  const Range in = input_range(c.call, c.rank, c.size);
  const Range out = output_range(c.call, c.rank, c.size);
  if (reads && in.count > 0 && c.call.in == nullptr) {
    c.refuse("`in` is null, but {} elements are to be read", in.count);
  }
  if (writes && out.count > 0 && c.call.out == nullptr) {
    c.refuse("`out` is null, but {} elements are to be written", out.count);
  }
  if (reads && writes) check_overlap(c, in, out);
}

void check_all(const CheckedCall& c, bool buffers) {
  check_enumerators(c);
  if (c.call.options.timeout && c.call.options.timeout->count() <= 0) {
    c.refuse("the timeout is {} ms; it must be above 0", c.call.options.timeout->count());
  }
  require_counts_to_be_used(c);
  if (c.call.reduction != nullptr) check_reduction(c);
  if (c.call.collective == Collective::barrier) {
    if (c.call.count != 0) c.refuse("a barrier has no elements, but `count` is {}", c.call.count);
    return;
  }
  for (const std::size_t count : {c.call.count, c.call.received}) {
    if (count <= std::numeric_limits<std::ptrdiff_t>::max() / element_bytes(c.call)) continue;
    c.refuse("{} elements of {} exceed the address space", count, name(c.call.type));
  }
  if (has_root(c.call.collective)) require_rank(c, "root", c.call.root);
  check_peers(c);
  check_chunks(c);
  if (c.call.reduction == nullptr && reduces(c.call.collective) &&
      !supports(c.call.type, c.call.op)) {
    c.refuse("{} is not defined for {}{}", name(c.call.op), name(c.call.type),
             c.call.op == ReduceOp::avg ? "; use sum and divide, or a floating-point type" : "");
  }
  if (buffers) check_buffers(c);
}

}  // namespace

void validate(const Call& call, int rank, int size) { check_all({call, rank, size}, true); }
void validate_without_buffers(const Call& call, int rank, int size) {
  check_all({call, rank, size}, false);
}

}  // namespace rondo::detail
