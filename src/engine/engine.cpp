#include "engine/engine.hpp"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/collective_traits.hpp"
#include "base/float_state.hpp"
#include "base/log.hpp"
#include "base/write_signals.hpp"
#include "engine/call_text.hpp"
#include "engine/chain.hpp"
#include "engine/one_shot.hpp"
#include "engine/owner_port.hpp"
#include "engine/pairwise_edges.hpp"
#include "engine/scratch.hpp"

namespace rondo::detail {

Engine::Engine(Wiring wiring)
    : wiring_(std::move(wiring)),
      board_(wiring_.links.segment->board()),
      waiter_(wiring_),
      confirmation_(wiring_),
      touching_(wiring_, waiter_),
      direct_(wiring_, waiter_, touching_),
      inside_(wiring_, waiter_, touching_),
      place_{wiring_.rank,
             wiring_.size,
             &wiring_.topology.ring,
             wiring_.links.ring_geometry,
             wiring_.links.off_ring_geometry,
             wiring_.links.pairwise_geometry,
             wiring_.links.pump != nullptr,
             wiring_.links.slowest_link,
             &borders_},
      among_leaders_{wiring_.rank, wiring_.links.hosts, &wiring_.links.rail,
                     wiring_.links.ring_geometry, wiring_.links.off_ring_geometry},
      borders_(static_cast<std::size_t>(wiring_.size) + 1),
      messages_to_(static_cast<std::size_t>(wiring_.size), first_message(wiring_.links.session)),
      messages_from_(messages_to_),
      contributions_(static_cast<std::size_t>(wiring_.size)) {}

Engine::~Engine() {
  const WriteSignalsHeld held(is_carried_by_mpi());
  try {
    if (wiring_.links.pump != nullptr) wiring_.links.pump->look_for_abort();
    if (const auto last = confirmation_.confirm_last()) tell_unconfirmed(*last);
  } catch (const std::exception& error) {
    log(LogLevel::warning, "rank {}: {}", wiring_.rank, error.what());
  }
  wiring_.links.segment->presence(wiring_.rank).leave();
  if (!board_.raised()) return;
  // Other hosts may not know that the communicator has ended. The caller does not know it either, if no call of this
  // rank has thrown it.
  const AbortRecord record = board_.read();
  if (wiring_.links.pump != nullptr) wiring_.links.pump->announce_abort(record);
  if (!told_of_the_end_ && record.rank != wiring_.rank) {
    log(LogLevel::warning,
        "rank {}: the communicator is destroyed; after this rank's last call, rank {} ended it: {}",
        wiring_.rank, record.rank, record.text);
  }
}

// Open MPI writes to sockets of processes that may have ended; their SIGPIPE would end this one, too.
bool Engine::is_carried_by_mpi() const { return has_pump() && network() == Carrier::mpi; }

void Engine::run(const Call& call, const Route& route, std::chrono::milliseconds timeout) {
  // An all_to_all computes by numbers of links how much it keeps under way.
  const FloatState float_state((reduces(call.collective) && is_floating(call.type)) ||
                               call.collective == Collective::all_to_all);
  const WriteSignalsHeld held(is_carried_by_mpi());
  if (is_message(call.collective)) {
    run_message(call, timeout);
    return;
  }
  ShownCall shown{signature_of(call, route.algorithm, wiring_.size), {}};
  Signature& signature = shown.signature;
  signature.sequence = sequence_++;
  throw_if_ended(signature);
  shown.buffers = direct_.locations_of(call);
  Presence& presence = wiring_.links.segment->presence(wiring_.rank);
  presence.enter(shown);
  waiter_.begin_call(signature, timeout, call.options.background);
  touching_.begin_call(call, signature.sequence);
  try {
    run_checked(call, route, shown);
    presence.end(signature.sequence);
  } catch (const UsageError&) {
    presence.end(signature.sequence);  // on all ranks alike: the communicator goes on
    throw;
  } catch (...) {
    end_with_thrown(signature, shown.buffers);
  }
}

void Engine::run_checked(const Call& call, const Route& route, const ShownCall& shown) {
  Algorithm algorithm = wiring_.size == 1 ? Algorithm::ring : route.algorithm;
  if (algorithm == Algorithm::automatic || algorithm == Algorithm::direct) {
    if (run_by_direct(call, route, shown)) return;
    algorithm = route.or_else;
  }
  if (algorithm == Algorithm::one_shot) {
    run_by_one_shot(call, shown.signature);
  } else if (algorithm == Algorithm::hierarchical) {
    run_by_hierarchy(call, route.between_hosts, shown);
  } else if (algorithm == Algorithm::chain) {
    run_by_chain(call, shown.signature);
  } else {
    run_by_schedule(call, algorithm, shown.signature);
  }
}

bool Engine::run_by_direct(const Call& call, const Route& route, const ShownCall& shown) {
  ring_all(wiring_.links.bells);  // for those who wait for what this rank shows
  const bool or_else = route.algorithm == Algorithm::automatic;
  const Direct::Outcome outcome = direct_.run(call, shown, or_else);
  if (outcome == Direct::Outcome::failed) {
    fail(shown.signature, direct_.failure(), direct_.so_far());
  }
  if (outcome == Direct::Outcome::unreachable && !or_else) throw_unreachable(shown.signature);
  if (outcome == Direct::Outcome::done) confirmation_.forget();
  return outcome == Direct::Outcome::done;
}

void Engine::reserve_for(Algorithm algorithm) {
  if (reserved_.has(algorithm)) return;
  std::vector<SegmentPart> used;
  for (Links::Part& one : wiring_.links.parts) {
    if (one.users.has(algorithm)) used.push_back(std::exchange(one.part, {}));
  }
  wiring_.links.segment->reserve(used);
  reserved_.add(algorithm);
}

void Engine::run_by_one_shot(const Call& call, const Signature& signature) {
  reserve_for(Algorithm::one_shot);
  OneShot one_shot(wiring_, waiter_, call, signature, contributions_, ++one_shots_);
  if (!one_shot.run()) fail(signature, one_shot.failure(), describe(one_shot.progress()));
  confirmation_.forget();
}

void Engine::run_by_hierarchy(const Call& call, Algorithm between_hosts, const ShownCall& shown) {
  reserve_for(Algorithm::hierarchical);
  const Signature& signature = shown.signature;
  const bool crosses = wiring_.links.hosts > 1;
  // Averages are divided by the number of all ranks between hosts; inside, they are parts of averages, or sums.
  const bool sums = crosses && call.op == ReduceOp::avg && !sums_as_parts(call.type);
  const ReduceOp op = sums ? ReduceOp::sum : call.op;
  Average average = average_of(call.type, wiring_.size);
  if (crosses) average.divisor = 1;
  Plan plan;
  if (between_hosts == Algorithm::ring) {
    plan = rail_plan(call, wiring_.links);
    inside_.begin(call, op, average, wiring_.links.rails, plan.slicing);
    plan.slicing.count = inside_.chunk().count;
  } else {
    plan = make_plan(call, between_hosts, among_leaders_, kChunkGranuleBytes);
    inside_.begin(call, op, average, 1, std::nullopt);
  }
  if (wiring_.links.pump != nullptr) wiring_.links.pump->begin_call(Algorithm::hierarchical);
  const auto require = [&](bool done) {
    if (!done) fail(signature, inside_.failure(), inside_.so_far());
  };
  require(inside_.meet(shown));
  if (crosses && inside_.owns()) run_between(call, plan, signature);
  require(inside_.finish());
  confirmation_.forget();
}

void Engine::run_between(const Call& call, const Plan& plan, const Signature& signature) {
  const Range chunk = inside_.chunk();
  Call between = call;
  between.in = between.out = static_cast<std::byte*>(call.out) + chunk.offset * size_of(call.type);
  between.count = chunk.count;
  HostCall host_call = host_call_of(between, plan, signature);
  host_call.average.scale = 1;
  HostPort port(wiring_, waiter_, host_call);
  OwnerPort owner(port, inside_);
  waiter_.set_meanwhile([this] { return inside_.work(); });
  if (!run_schedule(plan.schedule, plan.slicing, owner)) {
    fail(signature, owner.failure(), describe(port.progress()));
  }
  drain(signature, port.progress());
  waiter_.set_meanwhile(nullptr);
}

void Engine::run_by_chain(const Call& call, const Signature& signature) {
  ReservingTurn& turn = wiring_.links.segment->reserving_turn();
  run_chain(call, wiring_.rank, wiring_.size, turn, [&](const Call& part) {
    const Plan plan = make_plan(part, Algorithm::ring, place_, kChunkGranuleBytes);
    walk(part, plan, signature);
  });
  confirmation_.forget();
}

void Engine::run_by_schedule(const Call& call, Algorithm algorithm, const Signature& signature) {
  const Plan plan = make_plan(call, algorithm, place_, kChunkGranuleBytes);
  if (algorithm == Algorithm::pairwise) open_pairwise_edges(wiring_, plan.schedule);
  std::vector<std::byte> scratch;
  Call with_scratch = call;
  if (plan.schedule.needs_scratch()) {
    scratch = take_scratch<std::byte>(wiring_.links.segment->reserving_turn(),
                                      call.count * size_of(call.type));
    with_scratch.out = scratch.data();
  }
  const Progress progress = walk(with_scratch, plan, signature);
  if (const auto before = confirmation_.confirm_before(plan.schedule, signature, waiter_)) {
    fail(signature, before->failure,
         fmt::format("{}; rank {} is through with its own part, but does not know whether all "
                     "ranks made {}",
                     describe(progress), wiring_.rank, describe(before->call)));
  }
  if (wiring_.links.pump != nullptr) drain(signature, progress);  // this rank may have confirmed
  if (plan.schedule.needs_scratch() && call.collective == Collective::reduce_scatter &&
      plan.own.count > 0) {
    // Only the ring's first position needs scratch memory: rank 0, whose chunk begins at 0.
    std::memcpy(call.out, scratch.data(), plan.own.count * size_of(call.type));
  }
}

Progress Engine::walk(const Call& call, const Plan& plan, const Signature& signature) {
  reserve_for(plan.schedule.algorithm);
  const HostCall host_call = host_call_of(call, plan, signature);
  HostPort port(wiring_, waiter_, host_call);
  if (wiring_.links.pump != nullptr) wiring_.links.pump->begin_call(plan.schedule.algorithm);
  if (!run_schedule(plan.schedule, plan.slicing, port)) {
    fail(signature, port.failure(), describe(port.progress()));
  }
  if (wiring_.links.pump != nullptr) drain(signature, port.progress());
  return port.progress();
}

HostCall Engine::host_call_of(const Call& call, const Plan& plan,
                              const Signature& signature) const {
  HostCall host_call;
  host_call.signature = signature;
  host_call.element_bytes = size_of(call.type);
  host_call.kernel = vector_kernel(call.type, call.op);
  host_call.average = average_of(call.type, wiring_.size);
  // min and max pick an operand, and its bits, so partners get the same without.
  const bool picks = call.op == ReduceOp::min || call.op == ReduceOp::max;
  if (plan.schedule.algorithm == Algorithm::recursive_doubling && is_floating(call.type) &&
      !picks) {
    host_call.alike_nans_of = call.type;
  }
  host_call.ring = plan.ring;
  host_call.pairwise = plan.schedule.algorithm == Algorithm::pairwise;
  // `in` is only ever read. Scratch memory holds the whole vector, from its first element on.
  host_call.buffers = {
      {static_cast<std::byte*>(const_cast<void*>(call.in)), plan.in_origin},
      {static_cast<std::byte*>(call.out), plan.schedule.needs_scratch() ? 0 : plan.out_origin}};
  host_call.chunks_are_ranks = plan.chunks_are_ranks;
  host_call.non_temporal = stores_non_temporally(call);
  return host_call;
}

// Whether the output is larger than what a core's cache keeps, and not already in the cache: in a call in place its
// cache lines have just been read as input.
bool Engine::stores_non_temporally(const Call& call) const {
  return call.in != call.out &&
         call.count * size_of(call.type) >= wiring_.offers.non_temporal_bytes;
}

// What was published must be on its way before this thread stops driving the pump.
void Engine::drain(const Signature& signature, const Progress& progress) {
  while (const std::optional<int> peer = wiring_.links.pump->busy_peer()) {
    const WaitResult result =
        waiter_.wait(*peer, [&] { return wiring_.links.pump->busy_peer() != peer; });
    if (result != WaitResult::ready) {
      fail(signature, waiter_.why(result, *peer), describe(progress));
    }
  }
}

std::string Engine::objection_to_this_thread() const {
  return has_pump() ? wiring_.links.pump->objection_to_this_thread() : std::string();
}

std::string Engine::objection_to_progress_thread() const {
  return has_pump() ? wiring_.links.pump->objection_to_progress_thread() : std::string();
}

std::unique_ptr<Pump> Engine::another_pump(PumpEdges edges) {
  edges.board = &board_;
  return wiring_.links.pump->another(std::move(edges));
}

std::unique_ptr<Pump> Engine::pump_among(const std::vector<int>& ranks, PumpEdges edges) {
  return wiring_.links.pump->among(ranks, std::move(edges));
}

void Engine::abort(const std::string& reason) noexcept { board_.raise(wiring_.rank, reason); }

}  // namespace rondo::detail
