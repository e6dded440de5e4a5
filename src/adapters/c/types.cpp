#include <rondo/types.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <string>

#include <fmt/format.h>

#include <rondo/gradient_reducer.h>
#include <rondo/version.hpp>

#include "adapters/c/handles.hpp"

namespace rondo::c_interface {
namespace {

struct LastError {
  std::string text;
  bool lost = false;  // there was no memory for the text
};

LastError& last_error() noexcept {
  thread_local LastError of_thread;
  return of_thread;
}

rondo_status keep_error(rondo_status status, const char* text) noexcept {
  LastError& last = last_error();
  try {
    last.text = text;
    last.lost = false;
  } catch (...) {
    last.lost = true;
  }
  return status;
}

}  // namespace

rondo_status status_of_exception() noexcept {
  try {
    throw;
  } catch (const UsageError& error) {
    return keep_error(RONDO_USAGE_ERROR, error.what());
  } catch (const MismatchError& error) {
    return keep_error(RONDO_MISMATCH_ERROR, error.what());
  } catch (const TimeoutError& error) {
    return keep_error(RONDO_TIMEOUT_ERROR, error.what());
  } catch (const PeerError& error) {
    return keep_error(RONDO_PEER_ERROR, error.what());
  } catch (const TransportError& error) {
    return keep_error(RONDO_TRANSPORT_ERROR, error.what());
  } catch (const CudaError& error) {
    return keep_error(RONDO_CUDA_ERROR, error.what());
  } catch (const std::bad_alloc&) {
    return keep_error(RONDO_OUT_OF_MEMORY, "there is too little memory");
  } catch (const std::exception& error) {
    return keep_error(RONDO_OTHER_ERROR, error.what());
  } catch (...) {
    return keep_error(RONDO_OTHER_ERROR, "a C++ exception of another kind was thrown");
  }
}

void forget_error() noexcept {
  last_error().text.clear();
  last_error().lost = false;
}

void throw_again(rondo_status status, const std::string& otherwise) {
  const std::string& last = last_error().text;
  const std::string text = last.empty() ? otherwise : last;
  switch (status) {
    case RONDO_USAGE_ERROR:
      throw UsageError(text);
    case RONDO_MISMATCH_ERROR:
      throw MismatchError(text);
    case RONDO_TIMEOUT_ERROR:
      throw TimeoutError(text);
    case RONDO_PEER_ERROR:
      throw PeerError(text);
    case RONDO_TRANSPORT_ERROR:
      throw TransportError(text);
    case RONDO_CUDA_ERROR:
      throw CudaError(text);
    case RONDO_OUT_OF_MEMORY:
      throw std::bad_alloc();
    default:
      throw Error(text);
  }
}

void throw_null(const char* what) { throw UsageError(fmt::format("{} is NULL", what)); }

void throw_without_size(const char* name) {
  throw UsageError(fmt::format("struct_bytes of {} is not set: begin with its macro", name));
}

void throw_no_enumerator(const char* what, int value) {
  throw UsageError(fmt::format("there is no {} with number {}", what, value));
}

std::optional<Algorithm> algorithm_of(rondo_algorithm algorithm) {
  if (algorithm == RONDO_DEFAULT) return std::nullopt;
  return checked<Algorithm>(algorithm, kAlgorithmCount, "algorithm");
}

std::optional<std::chrono::milliseconds> timeout_of(double seconds) {
  constexpr double kMostS = 1e9;
  if (seconds == 0) return std::nullopt;
  if (!(seconds > 0))
    throw UsageError(fmt::format("timeout_s is {}: it must be positive", seconds));
  return std::chrono::milliseconds(std::llround(std::ceil(std::min(seconds, kMostS) * 1e3)));
}

CommunicatorOptions options_of(const rondo_options* given) {
  CommunicatorOptions options;
  if (given == nullptr) return options;
  const rondo_options known = known_part<rondo_options>(*given, RONDO_OPTIONS, "rondo_options");
  options.timeout = timeout_of(known.timeout_s);
  options.algorithm = algorithm_of(known.algorithm);
  // The first enumerators of both mean the same.
  options.carrier = checked<CarrierChoice>(known.carrier, RONDO_UCX + 1, "carrier to choose");
  options.rank_order = known.rank_order != 0;
  options.slot_bytes = known.slot_bytes;
  constexpr std::size_t kMostSlots = std::numeric_limits<std::uint32_t>::max();
  options.slots = static_cast<std::uint32_t>(std::min(known.slots, kMostSlots));
  if (known.secret != nullptr) options.network.secret = known.secret;
  options.network.without_secret = known.without_secret != 0;
  if (known.interface != nullptr) options.network.interface = known.interface;
  if (known.give_up_if != nullptr) {
    options.give_up_if = [asked = known.give_up_if, context = known.give_up_context] {
      return asked(context) != 0;
    };
  }
  return options;
}

CallOptions options_of(const rondo_call_options* given) {
  if (given == nullptr) return {};
  const auto known =
      known_part<rondo_call_options>(*given, RONDO_CALL_OPTIONS, "rondo_call_options");
  return {timeout_of(known.timeout_s), algorithm_of(known.algorithm), known.background != 0};
}

}  // namespace rondo::c_interface

namespace c = rondo::c_interface;

namespace {

// No member may be added where a program of an earlier release has padding.
template <class Struct, class Last>
constexpr bool ends_with(std::size_t offset) {
  return offset + sizeof(Last) == sizeof(Struct);
}
#define RONDO_ENDS_WITH(type, last) \
  static_assert(ends_with<type, decltype(type::last)>(offsetof(type, last)))
RONDO_ENDS_WITH(rondo_options, give_up_context);
RONDO_ENDS_WITH(rondo_call_options, background);
RONDO_ENDS_WITH(rondo_call, reduction);
RONDO_ENDS_WITH(rondo_reduction, unused);
RONDO_ENDS_WITH(rondo_place, host_id);
RONDO_ENDS_WITH(rondo_edge, reason);
RONDO_ENDS_WITH(rondo_machine, source);
RONDO_ENDS_WITH(rondo_parameter, unused);
RONDO_ENDS_WITH(rondo_gradient_options, timeout_s);
RONDO_ENDS_WITH(rondo_gradient_statistics, reordered);
RONDO_ENDS_WITH(rondo_bucket_statistics, end_us);
#undef RONDO_ENDS_WITH

// Enumerators of C and C++ have the same numbers.
template <class Enumeration>
constexpr bool same(int in_c, Enumeration in_cpp) {
  return in_c == static_cast<int>(in_cpp);
}
static_assert(same(RONDO_F32, rondo::DataType::f32));
static_assert(same(RONDO_F64, rondo::DataType::f64));
static_assert(same(RONDO_F16, rondo::DataType::f16));
static_assert(same(RONDO_BF16, rondo::DataType::bf16));
static_assert(same(RONDO_I8, rondo::DataType::i8));
static_assert(same(RONDO_U8, rondo::DataType::u8));
static_assert(same(RONDO_I32, rondo::DataType::i32));
static_assert(same(RONDO_U32, rondo::DataType::u32));
static_assert(same(RONDO_I64, rondo::DataType::i64));
static_assert(same(RONDO_U64, rondo::DataType::u64));
static_assert(same(RONDO_I16, rondo::DataType::i16));
static_assert(same(RONDO_U16, rondo::DataType::u16));
static_assert(same(RONDO_C64, rondo::DataType::c64));
static_assert(same(RONDO_C128, rondo::DataType::c128));
static_assert(same(RONDO_BOOLEAN, rondo::DataType::boolean));
static_assert(same(RONDO_SUM, rondo::ReduceOp::sum));
static_assert(same(RONDO_PROD, rondo::ReduceOp::prod));
static_assert(same(RONDO_MIN, rondo::ReduceOp::min));
static_assert(same(RONDO_MAX, rondo::ReduceOp::max));
static_assert(same(RONDO_AVG, rondo::ReduceOp::avg));
static_assert(same(RONDO_BIT_AND, rondo::ReduceOp::bit_and));
static_assert(same(RONDO_BIT_OR, rondo::ReduceOp::bit_or));
static_assert(same(RONDO_BIT_XOR, rondo::ReduceOp::bit_xor));
static_assert(same(RONDO_LOGICAL_AND, rondo::ReduceOp::logical_and));
static_assert(same(RONDO_LOGICAL_OR, rondo::ReduceOp::logical_or));
static_assert(same(RONDO_LOGICAL_XOR, rondo::ReduceOp::logical_xor));
static_assert(same(RONDO_ALL_REDUCE, rondo::Collective::all_reduce));
static_assert(same(RONDO_REDUCE_SCATTER, rondo::Collective::reduce_scatter));
static_assert(same(RONDO_ALL_GATHER, rondo::Collective::all_gather));
static_assert(same(RONDO_BROADCAST, rondo::Collective::broadcast));
static_assert(same(RONDO_REDUCE, rondo::Collective::reduce));
static_assert(same(RONDO_BARRIER, rondo::Collective::barrier));
static_assert(same(RONDO_GATHER, rondo::Collective::gather));
static_assert(same(RONDO_SCATTER, rondo::Collective::scatter));
static_assert(same(RONDO_ALL_TO_ALL, rondo::Collective::all_to_all));
static_assert(same(RONDO_SEND, rondo::Collective::send));
static_assert(same(RONDO_RECV, rondo::Collective::recv));
static_assert(same(RONDO_SENDRECV, rondo::Collective::sendrecv));
static_assert(same(RONDO_AUTOMATIC, rondo::Algorithm::automatic));
static_assert(same(RONDO_RING, rondo::Algorithm::ring));
static_assert(same(RONDO_NAIVE, rondo::Algorithm::naive));
static_assert(same(RONDO_ONE_SHOT, rondo::Algorithm::one_shot));
static_assert(same(RONDO_RECURSIVE_DOUBLING, rondo::Algorithm::recursive_doubling));
static_assert(same(RONDO_DIRECT, rondo::Algorithm::direct));
static_assert(same(RONDO_CHAIN, rondo::Algorithm::chain));
static_assert(same(RONDO_HALVING_DOUBLING, rondo::Algorithm::halving_doubling));
static_assert(same(RONDO_HIERARCHICAL, rondo::Algorithm::hierarchical));
static_assert(same(RONDO_TREE, rondo::Algorithm::tree));
static_assert(same(RONDO_PAIRWISE, rondo::Algorithm::pairwise));
static_assert(same(RONDO_ANY_CARRIER, rondo::CarrierChoice::automatic));
static_assert(same(RONDO_SHM, rondo::CarrierChoice::shm));
static_assert(same(RONDO_MPI, rondo::CarrierChoice::mpi));
static_assert(same(RONDO_UCX, rondo::CarrierChoice::ucx));
static_assert(same(RONDO_AVERAGE_SUM, rondo::Average::sum));
static_assert(same(RONDO_AVERAGE_RANKS, rondo::Average::ranks));
static_assert(same(RONDO_AVERAGE_SAMPLES, rondo::Average::samples));
static_assert(same(RONDO_WIRE_EXACT, rondo::WireType::exact));
static_assert(same(RONDO_WIRE_BF16, rondo::WireType::bf16));
static_assert(same(RONDO_WIRE_F16, rondo::WireType::f16));
static_assert(same(RONDO_LOG_INFO, rondo::LogLevel::info));
static_assert(same(RONDO_LOG_WARNING, rondo::LogLevel::warning));

// The names of values are in static storage and end with a zero.
template <class Enumeration>
const char* name_of(int value) noexcept {
  constexpr int kNone = 255;
  const int known = value < 0 || value > kNone ? kNone : value;
  return rondo::name(static_cast<Enumeration>(known)).data();
}

}  // namespace

const char* rondo_last_error() noexcept {
  const c::LastError& last = c::last_error();
  return last.lost ? "there is too little memory for the text of this error" : last.text.c_str();
}

const char* rondo_status_name(rondo_status status) noexcept {
  switch (status) {
    case RONDO_OK:
      return "ok";
    case RONDO_USAGE_ERROR:
      return "usage error";
    case RONDO_MISMATCH_ERROR:
      return "mismatch error";
    case RONDO_TIMEOUT_ERROR:
      return "timeout error";
    case RONDO_PEER_ERROR:
      return "peer error";
    case RONDO_TRANSPORT_ERROR:
      return "transport error";
    case RONDO_CUDA_ERROR:
      return "CUDA error";
    case RONDO_OUT_OF_MEMORY:
      return "out of memory";
    case RONDO_OTHER_ERROR:
      return "other error";
  }
  return "invalid";
}

const char* rondo_type_name(rondo_type type) noexcept { return name_of<rondo::DataType>(type); }
const char* rondo_op_name(rondo_op op) noexcept { return name_of<rondo::ReduceOp>(op); }
const char* rondo_collective_name(rondo_collective collective) noexcept {
  return name_of<rondo::Collective>(collective);
}
const char* rondo_algorithm_name(rondo_algorithm algorithm) noexcept {
  return algorithm == RONDO_DEFAULT ? "default" : name_of<rondo::Algorithm>(algorithm);
}
const char* rondo_carrier_name(rondo_carrier carrier) noexcept {
  switch (carrier) {
    case RONDO_ANY_CARRIER:
      return "automatic";
    case RONDO_SHM:
      return rondo::name(rondo::Carrier::shm).data();
    case RONDO_MPI:
      return rondo::name(rondo::Carrier::mpi).data();
    case RONDO_UCX:
      return rondo::name(rondo::Carrier::ucx).data();
    case RONDO_P2P:
      return rondo::name(rondo::Carrier::p2p).data();
    case RONDO_IPC:
      return rondo::name(rondo::Carrier::ipc).data();
    case RONDO_PINNED:
      return rondo::name(rondo::Carrier::pinned).data();
  }
  return "invalid";
}

rondo_algorithm rondo_algorithm_named(const char* name) noexcept {
  const auto found = rondo::algorithm_named(name);
  return found ? static_cast<rondo_algorithm>(*found) : RONDO_DEFAULT;
}

int rondo_supports(rondo_type type, rondo_op op) noexcept {
  if (type < 0 || type >= rondo::kDataTypeCount || op < 0 || op >= rondo::kReduceOpCount) return 0;
  return rondo::supports(static_cast<rondo::DataType>(type), static_cast<rondo::ReduceOp>(op)) ? 1
                                                                                               : 0;
}

size_t rondo_size_of(rondo_type type) noexcept {
  if (type < 0 || type >= rondo::kDataTypeCount) return 0;
  return rondo::size_of(static_cast<rondo::DataType>(type));
}

const char* rondo_version() noexcept { return RONDO_VERSION; }

rondo_status rondo_set_log_hook(rondo_log_hook hook, void* user, rondo_log_level lowest) noexcept {
  return c::status_of([&] {
    const auto level = c::checked<rondo::LogLevel>(lowest, 2, "level of messages");
    if (hook == nullptr) return rondo::set_log_hook({}, level);
    rondo::set_log_hook(
        [hook, user](rondo::LogLevel of_message, std::string_view message) {
          hook(user, static_cast<rondo_log_level>(of_message), std::string(message).c_str());
        },
        level);
  });
}
