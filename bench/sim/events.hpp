// Ranks that carry out their schedules in simulated time.
//
// An actor is a rank with its schedule, as run_schedule would walk it: window by window, step by
// step, slice by slice. A slice begins when what it needs has come, in the order of time, and takes
// the rank's time. What it sends then goes along the links of both hosts, each of which carries one
// slice at a time, the first to come first; within a host it is there at once. As in the library,
// some messages between hosts end only with the receiver's answer (net/run_ahead.hpp), and an
// actor ends a call when its messages have ended.
//
// Many ranks are alike. On N positions of a ring, each does in its own place what all others do,
// and so does a power of two of positions in halving_doubling: then fewer actors, a whole number of
// hosts, stand for all, and what actor a does for the position d places away is done by actor a + d
// (modulo the number of actors). Eight actors of a ring of 1000:
//
//   position     996  997  998  999    0    1    2  ...
//   actor          4    5    6    7    0    1    2
//
// Each actor takes 1999 steps, and receives from the one before it.
//
// Without jitter that changes nothing. With jitter, waiting spreads round a smaller ring, which
// hardly matters (tests/sim); in halving_doubling it can, since ranks that have come out of step
// then share links: so it has far more actors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <queue>
#include <random>
#include <unordered_map>
#include <vector>

#include "bench/sim/network.hpp"
#include "net/run_ahead.hpp"
#include "schedule/due.hpp"
#include "schedule/schedule.hpp"
#include "schedule/slicing.hpp"

namespace rondo::sim {

struct ActorPlace {
  detail::Schedule schedule;
  detail::Slicing slicing;
  int host = 0;
  double start_us = 0;
};

class Events {
 public:
  struct Shape {
    double element_bytes = 4;
    int stride = 1;  // from the actor of one position to that of the next
    // Of the edges between hosts, by which the library decides what is answered.
    detail::FifoGeometry fifo = {};
    // How many slices a FIFO has room for.
    int between_hosts_slots = 64;
    int within_host_slots = 8;
    // Each host receives from one other only, as in rings: then no slices meet at its link, which
    // need not be put in order.
    bool one_sender = false;
    // How many calls each actor makes, one after the other.
    int calls = 1;
  };
  Events(const Network& network, const Shape& shape, const std::vector<ActorPlace>& actors,
         std::uint64_t seed);

  // Returns how long a call takes, until it has ended on the last actor: of several calls, the mean
  // of the second half. Throws std::logic_error if actors wait for each other in a circle.
  double run();

 private:
  struct Edge {
    int from = 0;
    int to = 0;
    std::deque<double> arrivals;  // of slices that the receiver has not taken
    double last_reached = 0;      // when the last slice began to come to the receiver's link
    int under_way = 0;            // sent and not taken
    bool receiver_waits = false;
    bool sender_waits = false;
    detail::RunAhead run_ahead{detail::FifoGeometry{}};
  };
  struct Actor {
    ActorPlace place;
    int calls_made = 0;
    // Where it is in its schedule, and the edges of this step.
    int phase = -1;
    detail::Phase steps;  // of this phase
    std::uint64_t turns = 0;
    std::uint64_t turn = 0;
    int index = 0;
    std::uint64_t number = 0;
    std::uint64_t end = 0;
    detail::Step step;
    Range part;
    Edge* from = nullptr;
    Edge* to = nullptr;
    // Messages of this call whose answers have not come, and when the last of the others comes.
    int unanswered = 0;
    double answered_at = 0;
    // When its own part of the call ended, while messages of it are unanswered.
    std::optional<double> own_end = {};
    [[nodiscard]] bool done(const Shape& shape) const { return calls_made == shape.calls; }
  };
  // How long a slice takes on a link; and how long it does on the sender's, less where that link
  // has saved up a pause.
  struct OnLink {
    double us = 0;
    double sent_us = 0;
    bool answered = false;  // by the receiver
  };
  // An actor's next slice, or a slice that begins to come to the receiver's link.
  struct Event {
    double time = 0;
    int actor = 0;
    Edge* edge = nullptr;
    OnLink on_link = {};
    friend bool operator>(const Event& a, const Event& b) { return a.time > b.time; }
  };

  // Loads the slices of the next step that has any, if need be of the next call.
  void load(Actor& actor);
  // Goes to the next step. False: the actor has made all its calls.
  bool next_step(Actor& actor) const;
  void advance(Actor& actor);
  // Carries out the next slice at `now` if it can; else arranges to be asked again.
  void attempt(int number, double now);
  [[nodiscard]] double work_us(const detail::Step& step, double bytes) const;
  void send(Edge& edge, double now, double bytes);
  void reach(Edge& edge, double now, OnLink slice);
  // Returns when the link has carried a slice that takes `link_us` and that comes `now`.
  [[nodiscard]] double carry(double& link_free, double now, double link_us) const;
  void arrive(Edge& edge, double time, bool answered);
  void hear_answer(int sender, double time);
  void end_call(int number, double time);
  [[nodiscard]] double message_us();
  void take(Edge& edge, double now);
  [[nodiscard]] Edge& edge(int from, int to);
  [[nodiscard]] int actor_at(const Actor& actor, int number, int position) const;
  // An actor that stands for others, too, may send to one of them: that one is on another host.
  [[nodiscard]] bool leaves_host(const Edge& edge) const {
    return edge.from == edge.to || host_of(edge.from) != host_of(edge.to);
  }
  [[nodiscard]] int capacity(const Edge& edge) const;
  [[nodiscard]] int host_of(int actor) const {
    return actors_[static_cast<std::size_t>(actor)].place.host;
  }

  Network network_;
  Shape shape_;
  std::vector<Actor> actors_;
  std::unordered_map<std::uint64_t, Edge> edges_;
  std::vector<double> link_out_free_;  // by host: when its link can carry the next slice
  std::vector<double> link_in_free_;
  std::vector<double> ends_;  // of each call, on the last actor
  std::priority_queue<Event, std::vector<Event>, std::greater<>> queue_;
  std::mt19937_64 random_;
};

}  // namespace rondo::sim
