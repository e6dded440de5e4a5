#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include <rondo/calls.h>

#include "adapters/c/handles.hpp"

namespace c = rondo::c_interface;

namespace rondo::c_interface {

UserReduction reduction_of(const rondo_reduction* given) {
  constexpr rondo_reduction kDefaults = RONDO_REDUCTION(nullptr, 0);
  const auto known =
      known_part<rondo_reduction>(required(given, "reduction"), kDefaults, "rondo_reduction");
  UserReduction reduction;
  if (known.combine != nullptr) {
    reduction.combine = [combine = known.combine, user = known.user](const void* in, void* in_out,
                                                                     std::size_t count) {
      combine(user, in, in_out, count);
    };
  }
  reduction.element_bytes = known.element_bytes;
  reduction.commutative = known.commutative != 0;
  return reduction;
}

}  // namespace rondo::c_interface

namespace {

using rondo::Call;
using rondo::Collective;
using rondo::UserReduction;

rondo_status run_by(rondo_comm* comm, const rondo_reduction* reduction,
                    const rondo_call_options* options, Call& call) noexcept {
  return c::status_of([&] {
    const UserReduction made = c::reduction_of(reduction);
    call.reduction = &made;
    if (options != nullptr) call.options = c::options_of(options);
    c::communicator_of(comm).run(call);
  });
}

// Calls `visit(TypeTag)` with the type of a value, or of an index.
template <class T>
struct Tag {
  using Type = T;
};
template <class Visit>
UserReduction with_value(rondo_type type, const Visit& visit) {
  switch (type) {
    case RONDO_F32:
      return visit(Tag<float>{});
    case RONDO_F64:
      return visit(Tag<double>{});
    case RONDO_I8:
      return visit(Tag<std::int8_t>{});
    case RONDO_U8:
      return visit(Tag<std::uint8_t>{});
    case RONDO_I16:
      return visit(Tag<std::int16_t>{});
    case RONDO_U16:
      return visit(Tag<std::uint16_t>{});
    case RONDO_I32:
      return visit(Tag<std::int32_t>{});
    case RONDO_U32:
      return visit(Tag<std::uint32_t>{});
    case RONDO_I64:
      return visit(Tag<std::int64_t>{});
    case RONDO_U64:
      return visit(Tag<std::uint64_t>{});
    default:
      throw rondo::UsageError("rondo_location_reduction: `value` is no type that can be compared");
  }
}
template <class Index>
UserReduction location_of(rondo_op op, rondo_type value) {
  if (op != RONDO_MIN && op != RONDO_MAX) {
    throw rondo::UsageError("rondo_location_reduction: `op` must be RONDO_MIN or RONDO_MAX");
  }
  return with_value(value, [op](auto tag) {
    using T = typename decltype(tag)::Type;
    return op == RONDO_MIN ? rondo::min_location<T, Index>() : rondo::max_location<T, Index>();
  });
}
UserReduction location_of(rondo_op op, rondo_type value, rondo_type index) {
  if (index == RONDO_I32) return location_of<std::int32_t>(op, value);
  if (index == RONDO_I64) return location_of<std::int64_t>(op, value);
  throw rondo::UsageError("rondo_location_reduction: `index` must be RONDO_I32 or RONDO_I64");
}

// The reductions that rondo_location_reduction() has given out, which live as long as the process.
const UserReduction& kept_location(rondo_op op, rondo_type value, rondo_type index) {
  static std::mutex mutex;
  static auto* const kept = new std::map<std::tuple<int, int, int>, UserReduction>();
  const std::lock_guard lock(mutex);
  const auto key = std::make_tuple<int, int, int>(op, value, index);
  const auto found = kept->find(key);
  if (found != kept->end()) return found->second;
  return kept->emplace(key, location_of(op, value, index)).first->second;
}

void combine_kept(void* user, const void* in, void* in_out, std::size_t count) {
  static_cast<const UserReduction*>(user)->combine(in, in_out, count);
}

}  // namespace

rondo_status rondo_all_reduce_by(rondo_comm* comm, const void* in, void* out, std::size_t count,
                                 const rondo_reduction* reduction,
                                 const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::all_reduce, .in = in, .out = out, .count = count};
  return run_by(comm, reduction, options, call);
}

rondo_status rondo_reduce_by(rondo_comm* comm, const void* in, void* out, std::size_t count,
                             const rondo_reduction* reduction, int root,
                             const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::reduce, .in = in, .out = out, .count = count};
  call.root = root;
  return run_by(comm, reduction, options, call);
}

rondo_status rondo_reduce_scatter_by(rondo_comm* comm, const void* in, void* out, std::size_t count,
                                     const std::size_t* counts, const rondo_reduction* reduction,
                                     const rondo_call_options* options) noexcept {
  Call call{.collective = Collective::reduce_scatter, .in = in, .out = out, .count = count};
  const rondo_status status = c::status_of([&] {
    if (counts != nullptr) c::set_counts(comm, counts, call);
  });
  return status == RONDO_OK ? run_by(comm, reduction, options, call) : status;
}

rondo_status rondo_location_reduction(rondo_op op, rondo_type value, rondo_type index,
                                      rondo_reduction* reduction) noexcept {
  return c::status_of([&] {
    const UserReduction& kept = kept_location(op, value, index);
    rondo_reduction made = RONDO_REDUCTION(combine_kept, kept.element_bytes);
    made.user = const_cast<UserReduction*>(&kept);
    c::give(reduction, made, "rondo_reduction");
  });
}
