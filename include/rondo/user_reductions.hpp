/// \file
/// The collectives that reduce, by a function of the program's own (user_reduction.hpp).
#pragma once

#include <cstddef>
#include <ranges>
#include <span>
#include <type_traits>

#include <rondo/call.hpp>
#include <rondo/exchanges.hpp>
#include <rondo/export.hpp>
#include <rondo/user_reduction.hpp>
#include <rondo/work.hpp>

namespace rondo {

/// Contiguous objects of a type that may be copied as bytes: whole elements of a UserReduction, or
/// their bytes.
template <class R>
concept ObjectRange =
    std::ranges::contiguous_range<R> && std::ranges::sized_range<R> &&
    std::ranges::borrowed_range<R> && std::is_trivially_copyable_v<std::ranges::range_value_t<R>>;

/// An ObjectRange that can be written.
template <class R>
concept OutputObjectRange =
    ObjectRange<R> && !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;

/// Builds a rank's calls with a UserReduction. Counts are in its elements. Throws UsageError if
/// sizes do not fit.
struct UserReductionCalls : ExchangeCalls {
  using Calls::all_reduce;
  using Calls::reduce;
  using Calls::reduce_scatter;
  using ExchangeCalls::reduce_scatter_v;

  RONDO_API Call all_reduce(std::span<const std::byte> in, std::span<std::byte> out,
                            const UserReduction& reduction, const CallOptions& options) const;
  RONDO_API Call reduce(std::span<const std::byte> in, std::span<std::byte> out, int root,
                        const UserReduction& reduction, const CallOptions& options) const;
  RONDO_API Call reduce_scatter(std::span<const std::byte> in, std::span<std::byte> out,
                                const UserReduction& reduction, const CallOptions& options) const;
  RONDO_API Call reduce_scatter_v(std::span<const std::byte> in, std::span<std::byte> out,
                                  ChunkCounts counts, const UserReduction& reduction,
                                  const CallOptions& options) const;
};

namespace detail {
template <class R>
std::span<const std::byte> bytes_of(const R& range) {
  return std::as_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
}
template <class R>
std::span<std::byte> writable_bytes_of(R& range) {
  return std::as_writable_bytes(std::span(std::ranges::data(range), std::ranges::size(range)));
}
}  // namespace detail

/// The members of Communicator that take a UserReduction. Ranges hold whole elements of it, or
/// their bytes; those of one range work in place. What is said of the forms with a ReduceOp
/// (collectives.hpp, exchanges.hpp) holds here.
template <class Self>
class UserReductions {
 public:
  template <OutputObjectRange R>
  void all_reduce(R&& buffer, const UserReduction& reduction, CallOptions options = {}) {
    const std::span<std::byte> bytes = detail::writable_bytes_of(buffer);
    self().run(calls().all_reduce(bytes, bytes, reduction, options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  void all_reduce(In&& in, Out&& out, const UserReduction& reduction, CallOptions options = {}) {
    self().run(calls().all_reduce(detail::bytes_of(in), detail::writable_bytes_of(out), reduction,
                                  options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  void reduce(In&& in, Out&& out, int root, const UserReduction& reduction,
              CallOptions options = {}) {
    self().run(calls().reduce(detail::bytes_of(in), detail::writable_bytes_of(out), root, reduction,
                              options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  void reduce_scatter(In&& in, Out&& out, const UserReduction& reduction,
                      CallOptions options = {}) {
    self().run(calls().reduce_scatter(detail::bytes_of(in), detail::writable_bytes_of(out),
                                      reduction, options));
  }
  /// `counts`: elements of the reduction that each rank gets.
  template <ObjectRange In, OutputObjectRange Out>
  void reduce_scatter_v(In&& in, Out&& out, ChunkCounts counts, const UserReduction& reduction,
                        CallOptions options = {}) {
    self().run(calls().reduce_scatter_v(detail::bytes_of(in), detail::writable_bytes_of(out),
                                        counts, reduction, options));
  }

  template <OutputObjectRange R>
  [[nodiscard]] Work all_reduce_async(R&& buffer, const UserReduction& reduction,
                                      CallOptions options = {}) {
    const std::span<std::byte> bytes = detail::writable_bytes_of(buffer);
    return self().run_async(calls().all_reduce(bytes, bytes, reduction, options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  [[nodiscard]] Work all_reduce_async(In&& in, Out&& out, const UserReduction& reduction,
                                      CallOptions options = {}) {
    return self().run_async(calls().all_reduce(detail::bytes_of(in), detail::writable_bytes_of(out),
                                               reduction, options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  [[nodiscard]] Work reduce_async(In&& in, Out&& out, int root, const UserReduction& reduction,
                                  CallOptions options = {}) {
    return self().run_async(calls().reduce(detail::bytes_of(in), detail::writable_bytes_of(out),
                                           root, reduction, options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  [[nodiscard]] Work reduce_scatter_async(In&& in, Out&& out, const UserReduction& reduction,
                                          CallOptions options = {}) {
    return self().run_async(calls().reduce_scatter(
        detail::bytes_of(in), detail::writable_bytes_of(out), reduction, options));
  }
  template <ObjectRange In, OutputObjectRange Out>
  [[nodiscard]] Work reduce_scatter_v_async(In&& in, Out&& out, ChunkCounts counts,
                                            const UserReduction& reduction,
                                            CallOptions options = {}) {
    return self().run_async(calls().reduce_scatter_v(
        detail::bytes_of(in), detail::writable_bytes_of(out), counts, reduction, options));
  }

 private:
  friend Self;
  UserReductions() = default;
  ~UserReductions() = default;

  [[nodiscard]] Self& self() { return static_cast<Self&>(*this); }
  [[nodiscard]] UserReductionCalls calls() const {
    const auto& self = static_cast<const Self&>(*this);
    return {{{self.rank(), self.size()}}};
  }
};

}  // namespace rondo
