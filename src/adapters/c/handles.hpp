// What the handles and values of the C interface are in C++.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include <rondo/calls.h>
#include <rondo/rondo.hpp>

struct rondo_comm {
  explicit rondo_comm(rondo::Communicator&& its_own)
      : own(std::move(its_own)), communicator(&*own) {}
  // For a hook: of a communicator that is not this handle's.
  explicit rondo_comm(rondo::Communicator& of_reducer) : communicator(&of_reducer) {}
  rondo_comm(const rondo_comm&) = delete;
  rondo_comm& operator=(const rondo_comm&) = delete;
  ~rondo_comm() = default;

  std::optional<rondo::Communicator> own;
  rondo::Communicator* communicator;
};

struct rondo_work {
  rondo::Work work;
};

struct rondo_prepared {
  rondo::PersistentCall call;
};

namespace rondo::c_interface {

// Keeps the text for rondo_last_error(), and returns the status of the exception that is handled.
rondo_status status_of_exception() noexcept;

template <class Body>
rondo_status status_of(const Body& body) noexcept {
  try {
    body();
    return RONDO_OK;
  } catch (...) {
    return status_of_exception();
  }
}

// Empties the thread's text.
void forget_error() noexcept;

// Throws the exception with this status and the text of this thread's last error, or with
// `otherwise` if it had none.
[[noreturn]] void throw_again(rondo_status status, const std::string& otherwise);

// Throws UsageError: argument `what` of the calling function must not be NULL.
[[noreturn]] void throw_null(const char* what);

template <class T>
T& required(T* argument, const char* what) {
  if (argument == nullptr) throw_null(what);
  return *argument;
}

// A structure whose first member is its size in the program that gives it, which may know fewer
// members than this library, or more: those have their defaults.
[[noreturn]] void throw_without_size(const char* name);

template <class Struct>
std::size_t known_bytes(const Struct& given, const char* name) {
  if (given.struct_bytes < sizeof(std::size_t)) throw_without_size(name);
  return given.struct_bytes < sizeof(Struct) ? given.struct_bytes : sizeof(Struct);
}

template <class Struct>
Struct known_part(const Struct& given, Struct defaults, const char* name) {
  std::memcpy(&defaults, &given, known_bytes(given, name));
  return defaults;
}

// Fills as much of `*to` as its program knows, which keeps its size.
template <class Struct>
void give(Struct* to, Struct values, const char* name) {
  const std::size_t bytes = known_bytes(required(to, name), name);
  values.struct_bytes = to->struct_bytes;
  std::memcpy(to, &values, bytes);
}

// An enumerator of C as that of C++ with the same number. Throws UsageError for none of `count`.
[[noreturn]] void throw_no_enumerator(const char* what, int value);

template <class Enumeration>
Enumeration checked(int value, int count, const char* what) {
  if (value < 0 || value >= count) throw_no_enumerator(what, value);
  return static_cast<Enumeration>(value);
}

inline DataType type_of(rondo_type type) { return checked<DataType>(type, kDataTypeCount, "type"); }
inline ReduceOp op_of(rondo_op op) { return checked<ReduceOp>(op, kReduceOpCount, "operation"); }
std::optional<Algorithm> algorithm_of(rondo_algorithm algorithm);
// 0: nothing.
std::optional<std::chrono::milliseconds> timeout_of(double seconds);

CommunicatorOptions options_of(const rondo_options* given);
CallOptions options_of(const rondo_call_options* given);

UserReduction reduction_of(const rondo_reduction* given);

// Gives `*comm` the communicator that `make` returns, or NULL if it throws.
template <class Make>
rondo_status make_comm(rondo_comm** comm, const Make& make) noexcept {
  if (comm != nullptr) *comm = nullptr;
  return status_of([&] {
    rondo_comm*& result = required(comm, "comm");
    result = std::make_unique<rondo_comm>(make()).release();
  });
}

inline Communicator& communicator_of(const rondo_comm* comm) {
  return *required(comm, "comm").communicator;
}

// The whole vector consists of chunks of these sizes.
inline void set_counts(const rondo_comm* comm, const std::size_t* counts, Call& call) {
  static_cast<void>(required(counts, "counts"));
  call.counts = counts;
  call.count = std::accumulate(counts, counts + communicator_of(comm).size(), std::size_t{0});
}

// A copy of a text that lives until the next call with the same `kept`.
inline const char* keep(std::string& kept, std::string text) {
  kept = std::move(text);
  return kept.c_str();
}

}  // namespace rondo::c_interface
