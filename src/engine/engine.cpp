#include "engine/engine.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "base/log.hpp"
#include "engine/call_text.hpp"
#include "engine/run_schedule.hpp"
#include "reduce/kernels.hpp"

namespace rondo::detail {
namespace {

// What chunk borders are rounded to where nobody can see them.
constexpr std::uint64_t kCacheLineBytes = 64;
// A piece and what it is made of lie in the first cache.
constexpr std::uint64_t kPieceBytes = 8192;

// A buffer of which element `origin` of the vector comes first.
struct Window {
  std::byte* data = nullptr;
  std::uint64_t origin = 0;
};

struct Buffers {
  Window in;  // only read
  Window out;
};

}  // namespace

// What run_schedule stands on: FIFO ends, pointers and one reduction kernel.
class Engine::HostPort {
 public:
  HostPort(Engine& engine, const Signature& signature, const Buffers& buffers,
           std::size_t element_bytes, const ReduceKernel& kernel, bool chunks_are_ranks,
           bool streams)
      : engine_(engine),
        signature_(signature),
        buffers_(buffers),
        element_bytes_(element_bytes),
        kernel_(kernel),
        copy_(vector_copy()),
        chunks_are_ranks_(chunks_are_ranks),
        streams_(streams) {}

  [[nodiscard]] std::uint64_t chunk_at(int position) const {
    return static_cast<std::uint64_t>(chunks_are_ranks_ ? rank_at(position) : position);
  }

  bool wait_received(int from, const Range& slice) {
    RecvEnd& end = from_(from);
    if (!waited(from, engine_.waiter_.wait(rank_at(from), [&] { return end.can_peek(); }))) {
      return false;
    }
    const SlotHeader& header = *end.slot();
    if (header.signature == signature_ && header.bytes == slice.count * element_bytes_) return true;
    other_call_ = header.signature;
    failed_at_ = from;
    return false;
  }

  bool wait_free(int to) {
    SendEnd& end = to_(to);
    return waited(to, engine_.waiter_.wait(rank_at(to), [&] { return end.can_acquire(); }));
  }

  void move(const Step& step, const Range& slice) {
    if (slice.count == 0) return;
    const std::byte* received = step.has(kRecv) ? payload(from_(step.from).slot()) : nullptr;
    std::byte* copied = step.has(kCopy) ? at(buffers_.out, slice) : nullptr;
    std::byte* sent = step.has(kSend) ? payload(to_(step.to).slot()) : nullptr;
    if (step.has(kReduce)) {
      reduce(step, slice, received, copied, sent);
      return;
    }
    const std::byte* source = received != nullptr ? received : mine(step, slice);
    if (copied == source) copied = nullptr;
    if (sent != nullptr) copy_.cached(sent, source, bytes(slice));
    if (copied != nullptr)
      (streams_ ? copy_.streaming : copy_.cached)(copied, source, bytes(slice));
  }

  void release(int from) {
    from_(from).release();
    ++slices_done_;
  }

  void publish(int to, const Range& slice) {
    SendEnd& end = to_(to);
    end.slot()->signature = signature_;
    end.slot()->bytes = bytes(slice);
    end.publish();
    bytes_sent_ += bytes(slice);
  }

  // Why the schedule stopped.
  [[nodiscard]] const std::optional<Signature>& other_call() const { return other_call_; }
  [[nodiscard]] WaitResult result() const { return result_; }
  [[nodiscard]] int failed_at() const { return failed_at_; }
  [[nodiscard]] std::string progress() const {
    return fmt::format("{} slices received, {} bytes sent", slices_done_, bytes_sent_);
  }
  [[nodiscard]] int rank_at(int position) const {
    return engine_.wiring_.topology.ring[static_cast<std::size_t>(position)];
  }

 private:
  void reduce(const Step& step, const Range& slice, const std::byte* received, std::byte* copied,
              std::byte* sent) {
    const ReduceFunction function = step.has(kFinish) ? kernel_.finish : kernel_.combine;
    const int ranks = engine_.wiring_.size;
    if (copied == nullptr || sent == nullptr || !streams_) {
      std::byte* first = copied != nullptr ? copied : sent;
      std::byte* second = copied != nullptr ? sent : nullptr;
      function(first, second, received, mine(step, slice), slice.count, ranks);
      return;
    }
    // Piece by piece, so that what is streamed to the output is read from the first cache.
    const std::uint64_t piece_elems = kPieceBytes / element_bytes_;
    for (std::uint64_t done = 0; done < slice.count; done += piece_elems) {
      const std::uint64_t count = std::min(piece_elems, slice.count - done);
      const std::uint64_t offset = done * element_bytes_;
      function(sent + offset, nullptr, received + offset, mine(step, slice) + offset, count, ranks);
      copy_.streaming(copied + offset, sent + offset, count * element_bytes_);
    }
  }
  bool waited(int position, WaitResult result) {
    if (result == WaitResult::ready) return true;
    result_ = result;
    failed_at_ = position;
    return false;
  }
  [[nodiscard]] RecvEnd& from_(int position) {
    return engine_.wiring_.from[static_cast<std::size_t>(position)];
  }
  [[nodiscard]] SendEnd& to_(int position) {
    return engine_.wiring_.to[static_cast<std::size_t>(position)];
  }
  [[nodiscard]] std::size_t bytes(const Range& slice) const { return slice.count * element_bytes_; }
  [[nodiscard]] const std::byte* mine(const Step& step, const Range& slice) const {
    return at(step.has(kMineIsOutput) ? buffers_.out : buffers_.in, slice);
  }
  [[nodiscard]] std::byte* at(const Window& window, const Range& slice) const {
    return window.data + (slice.offset - window.origin) * element_bytes_;
  }

  Engine& engine_;
  const Signature& signature_;
  Buffers buffers_;
  std::size_t element_bytes_;
  ReduceKernel kernel_;
  CopyKernel copy_;
  bool chunks_are_ranks_;
  bool streams_;  // the output goes past the caches
  std::uint64_t slices_done_ = 0;
  std::uint64_t bytes_sent_ = 0;
  WaitResult result_ = WaitResult::ready;
  int failed_at_ = kNobody;
  std::optional<Signature> other_call_;
};

Engine::Engine(Wiring wiring)
    : wiring_(std::move(wiring)),
      board_(wiring_.segment->board()),
      waiter_(board_, wiring_.peers, wiring_.pump.get(), wiring_.crowded),
      place_{wiring_.rank, wiring_.size, &wiring_.topology.ring, wiring_.ring_geometry,
             wiring_.star_geometry} {}

Engine::~Engine() {
  // An abort() that no call has met yet.
  if (wiring_.pump != nullptr && board_.raised()) wiring_.pump->announce_abort(board_.read());
}

void Engine::run(const Call& call, Algorithm algorithm, std::chrono::milliseconds timeout) {
  Signature signature = signature_of(call, algorithm);
  signature.sequence = sequence_++;
  throw_if_ended(signature);
  // For those that wait for this rank in vain; orders nothing else.
  store_release(wiring_.segment->calls_entered(wiring_.rank).value, sequence_);
  waiter_.begin_call(timeout);
  try {
    run_checked(call, algorithm, signature);
  } catch (const TransportError& error) {
    const std::string text =
        fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what());
    raise(text);
    throw TransportError(text);
  } catch (const Error&) {
    throw;  // raised where it was found
  } catch (const std::exception& error) {
    raise(fmt::format("rank {}: {}: {}", wiring_.rank, describe(signature), error.what()));
    throw;
  }
}

void Engine::run_checked(const Call& call, Algorithm algorithm, const Signature& signature) {
  const std::size_t element_bytes = size_of(call.type);
  const Plan plan = make_plan(call, algorithm, place_, kCacheLineBytes);
  // `in` is only ever read.
  Buffers buffers{{static_cast<std::byte*>(const_cast<void*>(call.in)), plan.in_origin},
                  {static_cast<std::byte*>(call.out), plan.out_origin}};
  std::vector<std::byte> scratch;
  if (plan.schedule.needs_scratch()) {
    scratch.resize(call.count * element_bytes);
    buffers.out = {scratch.data(), 0};
  }

  HostPort port(*this, signature, buffers, element_bytes, vector_kernel(call.type, call.op),
                plan.chunks_are_ranks, streams(call));
  if (wiring_.pump != nullptr) wiring_.pump->begin_call(algorithm);
  if (!run_schedule(plan.schedule, plan.slicing, port)) {
    fail(signature, port, port.result(), port.rank_at(port.failed_at()));
  }
  if (wiring_.pump != nullptr) drain(signature, port);
  if (plan.schedule.needs_scratch() && call.collective == Collective::reduce_scatter &&
      plan.own.count > 0) {
    std::memcpy(call.out, scratch.data() + plan.own.offset * element_bytes,
                plan.own.count * element_bytes);
  }
}

// Whether the output is more than a core's cache keeps, and not there already: in place, its lines were
// read just before.
bool Engine::streams(const Call& call) const {
  return call.in != call.out && call.count * size_of(call.type) >= wiring_.streaming_bytes;
}

// What was published must be on its way before this thread stops driving the pump.
void Engine::drain(const Signature& signature, const HostPort& port) {
  while (const std::optional<int> peer = wiring_.pump->busy_peer()) {
    const WaitResult result =
        waiter_.wait(*peer, [&] { return wiring_.pump->busy_peer() != peer; });
    if (result != WaitResult::ready) fail(signature, port, result, *peer);
  }
}

void Engine::fail(const Signature& signature, const HostPort& port, WaitResult result, int peer) {
  if (port.other_call()) {
    const std::string text = text_of_mismatch(wiring_.rank, signature, peer, *port.other_call());
    raise(text);
    throw MismatchError(text);
  }
  if (result == WaitResult::peer_ended) {
    const std::string text = fmt::format(
        "rank {}: rank {} (process {}) ended during {}; {}. Look at that process's own output for "
        "the reason",
        wiring_.rank, peer, wiring_.topology.places[static_cast<std::size_t>(peer)].process_id,
        describe(signature), port.progress());
    raise(text);
    throw PeerError(text);
  }
  if (result == WaitResult::timed_out) {
    const std::string text = fmt::format(
        "rank {} waited for rank {} until the deadline of {}; {}. {} If ranks are only slow, set a "
        "longer timeout (CallOptions, CommunicatorOptions or RONDO_TIMEOUT)",
        wiring_.rank, peer, describe(signature), port.progress(), who_is_missing(signature));
    raise(text);
    throw TimeoutError(text);
  }
  throw_if_ended(signature);
  throw Error(
      fmt::format("rank {}: {} stopped without a reason", wiring_.rank, describe(signature)));
}

std::string Engine::who_is_missing(const Signature& signature) const {
  std::string missing;
  for (const int rank : wiring_.ranks_sharing) {
    if (load_acquire(wiring_.segment->calls_entered(rank).value) > signature.sequence) continue;
    missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  const std::string where =
      wiring_.ranks_sharing.size() < static_cast<std::size_t>(wiring_.size) ? " of this host" : "";
  if (missing.empty()) return fmt::format("All ranks{} have made that call.", where);
  return fmt::format("Ranks{} that have not made that call: {}.", where, missing);
}

void Engine::raise(const std::string& text) noexcept {
  board_.raise(wiring_.rank, text);
  if (wiring_.pump != nullptr) wiring_.pump->announce_abort({wiring_.rank, text});
  log(LogLevel::warning, "{}", text);
}

void Engine::throw_if_ended(const Signature& signature) {
  if (!board_.raised()) return;
  const AbortRecord record = board_.read();
  // Whoever raised it may be in no call of its own, so everyone who meets it passes it on.
  if (wiring_.pump != nullptr) wiring_.pump->announce_abort(record);
  throw PeerError(fmt::format("rank {}: {} cannot go on, rank {} has ended the communicator: {}",
                              wiring_.rank, describe(signature), record.rank, record.text));
}

void Engine::abort(const std::string& reason) noexcept { board_.raise(wiring_.rank, reason); }

}  // namespace rondo::detail
