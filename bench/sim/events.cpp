#include "bench/sim/events.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "fifo/fifo.hpp"

namespace rondo::sim {

using detail::Slicing;
using detail::Step;

Events::Events(const Network& network, const Shape& shape, const std::vector<ActorPlace>& actors,
               std::uint64_t seed)
    : network_(network),
      shape_(shape),
      ends_(static_cast<std::size_t>(shape.calls)),
      random_(seed) {
  int hosts = 0;
  actors_.reserve(actors.size());
  for (const ActorPlace& place : actors) {
    Actor actor;
    actor.place = place;
    hosts = std::max(hosts, place.host + 1);
    actors_.push_back(actor);
  }
  link_out_free_.resize(static_cast<std::size_t>(hosts));
  link_in_free_.resize(static_cast<std::size_t>(hosts));
}

double Events::run() {
  for (std::size_t i = 0; i < actors_.size(); ++i) {
    load(actors_[i]);
    queue_.push({actors_[i].place.start_us, static_cast<int>(i)});
  }
  while (!queue_.empty()) {
    const Event event = queue_.top();
    queue_.pop();
    if (event.edge == nullptr) {
      attempt(event.actor, event.time);
    } else {
      reach(*event.edge, event.time, event.on_link);
    }
  }
  for (const Actor& actor : actors_) {
    if (!actor.done(shape_)) {
      throw std::logic_error("simulated ranks wait for each other in a circle");
    }
  }
  const std::size_t first_half = ends_.size() / 2;
  if (first_half == 0) return ends_.back();
  return (ends_.back() - ends_[first_half - 1]) / static_cast<double>(ends_.size() - first_half);
}

namespace {

std::uint64_t chunk_itself(int chunk) { return static_cast<std::uint64_t>(chunk); }

}  // namespace

// As run_schedule walks them.
bool Events::next_step(Actor& actor) const {
  const detail::Schedule& schedule = actor.place.schedule;
  if (++actor.index < actor.steps.end) return true;
  actor.index = actor.steps.first;
  if (++actor.turn < actor.turns) return true;
  if (++actor.phase == schedule.phases()) {
    actor.phase = 0;
    ++actor.calls_made;
  }
  actor.steps = schedule.phase(actor.phase);
  actor.turns = detail::turns_of(schedule, actor.steps, actor.place.slicing, chunk_itself);
  actor.turn = 0;
  actor.index = actor.steps.first;
  return !actor.done(shape_);
}

void Events::load(Actor& actor) {
  const Slicing& slicing = actor.place.slicing;
  const int number = static_cast<int>(&actor - actors_.data());
  while (next_step(actor)) {
    const Step step = actor.place.schedule.step(actor.index);
    const detail::DueSlices due = detail::due_slices(step, actor.turn, slicing, chunk_itself);
    if (due.begin >= due.end) continue;
    actor.number = due.begin;
    actor.end = due.end;
    actor.part = due.part;
    actor.step = step;
    actor.from =
        step.has(detail::kRecv) ? &edge(actor_at(actor, number, step.from), number) : nullptr;
    actor.to = step.has(detail::kSend) ? &edge(number, actor_at(actor, number, step.to)) : nullptr;
    return;
  }
}

void Events::advance(Actor& actor) {
  if (++actor.number < actor.end) return;
  load(actor);
}

int Events::actor_at(const Actor& actor, int number, int position) const {
  const int size = actor.place.schedule.size;
  int distance = position - actor.place.schedule.position;
  if (distance > size / 2) distance -= size;
  if (distance < -size / 2) distance += size;
  const int all = static_cast<int>(actors_.size());
  const int other = (number + distance * shape_.stride) % all;
  return other < 0 ? other + all : other;
}

Events::Edge& Events::edge(int from, int to) {
  const std::uint64_t key = (static_cast<std::uint64_t>(from) << 32U) | static_cast<unsigned>(to);
  const auto [found, is_new] = edges_.try_emplace(key);
  Edge& edge = found->second;
  if (is_new) {
    edge.from = from;
    edge.to = to;
    edge.run_ahead = detail::RunAhead(shape_.fifo);
  }
  return edge;
}

int Events::capacity(const Edge& edge) const {
  // Between hosts both ends have slots.
  return leaves_host(edge) ? 2 * shape_.between_hosts_slots : shape_.within_host_slots;
}

double Events::work_us(const Step& step, double bytes) const {
  double us = 0;
  if (step.has(detail::kRecv) || step.has(detail::kSend)) us += network_.slice_us;
  if (step.has(detail::kReduce)) return us + bytes / network_.reduce_bytes_per_us;
  const int copies = (step.has(detail::kCopy) ? 1 : 0) + (step.has(detail::kSend) ? 1 : 0);
  return us + copies * bytes / network_.copy_bytes_per_us;
}

void Events::attempt(int number, double now) {
  Actor& actor = actors_[static_cast<std::size_t>(number)];
  if (actor.from != nullptr) {
    if (actor.from->arrivals.empty()) {
      actor.from->receiver_waits = true;
      return;
    }
    if (actor.from->arrivals.front() > now) {
      queue_.push({actor.from->arrivals.front(), number});
      return;
    }
  }
  if (actor.to != nullptr && actor.to->under_way >= capacity(*actor.to)) {
    actor.to->sender_waits = true;
    return;
  }
  const Range slice = actor.place.slicing.slice(actor.part, actor.number);
  const auto bytes = static_cast<double>(slice.count) * shape_.element_bytes;
  const double end = now + work_us(actor.step, bytes);
  if (actor.from != nullptr) take(*actor.from, end);
  if (actor.to != nullptr) send(*actor.to, end, bytes);
  const int call = actor.calls_made;
  advance(actor);
  if (actor.calls_made == call) {
    queue_.push({end, number});
  } else if (actor.unanswered > 0) {
    actor.own_end = end;
  } else {
    end_call(number, std::max(end, actor.answered_at));
  }
}

// Of the call before the one that has been loaded.
void Events::end_call(int number, double time) {
  Actor& actor = actors_[static_cast<std::size_t>(number)];
  actor.own_end.reset();
  double& last = ends_[static_cast<std::size_t>(actor.calls_made) - 1];
  last = std::max(last, time);
  if (!actor.done(shape_)) queue_.push({time, number});
}

void Events::hear_answer(int sender, double time) {
  Actor& actor = actors_[static_cast<std::size_t>(sender)];
  actor.answered_at = std::max(actor.answered_at, time);
  if (--actor.unanswered == 0 && actor.own_end) {
    end_call(sender, std::max(*actor.own_end, actor.answered_at));
  }
}

// How long a message without bytes is under way.
double Events::message_us() {
  if (network_.jitter_us == 0) return network_.latency_us;
  return network_.latency_us +
         std::exponential_distribution<double>(1 / network_.jitter_us)(random_);
}

void Events::take(Edge& edge, double now) {
  edge.arrivals.pop_front();
  --edge.under_way;
  if (!edge.sender_waits) return;
  edge.sender_waits = false;
  queue_.push({leaves_host(edge) ? now + network_.latency_us : now, edge.from});
}

void Events::send(Edge& edge, double now, double bytes) {
  ++edge.under_way;
  if (!leaves_host(edge)) {
    arrive(edge, now, false);
    return;
  }
  const bool answered =
      edge.run_ahead.must_be_taken(sizeof(detail::SlotHeader) + static_cast<std::uint64_t>(bytes));
  if (answered) ++actors_[static_cast<std::size_t>(edge.from)].unanswered;
  double& link_free = link_out_free_[static_cast<std::size_t>(host_of(edge.from))];
  const double link_us = bytes / network_.link_bytes_per_us;
  const double sent = carry(link_free, now, link_us);
  const double start = std::max(now, sent - link_us);
  const OnLink slice{link_us, sent - start, answered};
  edge.last_reached = std::max(edge.last_reached, start + message_us());
  if (shape_.one_sender) {
    reach(edge, edge.last_reached, slice);
  } else {
    queue_.push({edge.last_reached, edge.to, &edge, slice});
  }
}

// The receiver's link carries the slice as it comes, if the link is free then, and not before the
// sender's has.
void Events::reach(Edge& edge, double now, OnLink slice) {
  double& link_free = link_in_free_[static_cast<std::size_t>(host_of(edge.to))];
  arrive(edge, std::max(carry(link_free, now, slice.us), now + slice.sent_us), slice.answered);
}

double Events::carry(double& link_free, double now, double link_us) const {
  const double burst_us = network_.burst_bytes / network_.link_bytes_per_us;
  // A bucket is empty when the first call begins, as after other calls.
  link_free = std::max(std::max(now - burst_us, 0.0), link_free) + link_us;
  return std::max(now, link_free);
}

// The receiver waits for messages in all free slots of its FIFO, so it takes a message when it
// comes.
void Events::arrive(Edge& edge, double time, bool answered) {
  edge.arrivals.push_back(time);
  if (answered) hear_answer(edge.from, time + message_us());
  if (!edge.receiver_waits) return;
  edge.receiver_waits = false;
  queue_.push({time, edge.to});
}

}  // namespace rondo::sim
