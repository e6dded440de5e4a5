// Carries out calls on the host: takes a checked call to what its algorithm needs (direct, one_shot, inside and rails,
// chain, or a schedule), and turns a failure into an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <rondo/call.hpp>
#include <rondo/topology.hpp>

#include "engine/confirmation.hpp"
#include "engine/direct.hpp"
#include "engine/host_port.hpp"
#include "engine/inside.hpp"
#include "engine/plan.hpp"
#include "engine/waiter.hpp"
#include "engine/wiring.hpp"

namespace rondo::detail {

// How a call is carried out.
struct Route {
  // `automatic`: by `direct` if all ranks' buffers are reachable, which only the call itself finds out, else by `or_else`.
  Algorithm algorithm = Algorithm::ring;
  Algorithm or_else = Algorithm::ring;
  // By `hierarchical`: how each host's leader exchanges its host's result with the others'; `ring`: along rails.
  Algorithm between_hosts = Algorithm::ring;
};

class Engine {
 public:
  explicit Engine(Wiring wiring);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  // `call` has been checked, and its route is settled. Blocks until done; one thread at a time.
  void run(const Call& call, const Route& route, std::chrono::milliseconds timeout);

  // Any thread may call.
  void abort(const std::string& reason) noexcept;

  [[nodiscard]] int rank() const { return wiring_.rank; }
  [[nodiscard]] int size() const { return wiring_.size; }
  [[nodiscard]] const Topology& topology() const { return wiring_.topology; }
  // Tells the messages of this communicator from those of others.
  [[nodiscard]] std::uint64_t session() const { return wiring_.links.session; }
  [[nodiscard]] const Offers& offers() const { return wiring_.offers; }
  // Where `hierarchical` is offered.
  [[nodiscard]] int hosts() const { return wiring_.links.hosts; }

  // Why calls may not be made by this thread, or by one that the library starts; empty if they may.
  [[nodiscard]] std::string objection_to_this_thread() const;
  [[nodiscard]] std::string objection_to_progress_thread() const;

  // For a device's engine, which joins the same ranks: the board that shows whether the communicator has ended,
  // whether a rank's process has ended, and a pump for the device's own edges. another_pump() is collective and
  // needs has_pump().
  [[nodiscard]] AbortBoard& board() { return board_; }
  [[nodiscard]] bool process_has_ended(int rank) const { return wiring_.waiting.peers.ended(rank); }
  [[nodiscard]] bool has_pump() const { return wiring_.links.pump != nullptr; }
  std::unique_ptr<Pump> another_pump(PumpEdges edges);

  // For a communicator of some of the ranks. Where threads hand wirings to each other; null for processes.
  [[nodiscard]] Handover* handover() { return wiring_.links.handover.get(); }
  // A pump among `ranks`; collective over them, and needs has_pump().
  [[nodiscard]] Carrier network() const { return wiring_.links.network; }
  [[nodiscard]] const Waiting& waiting() const { return wiring_.waiting; }
  std::unique_ptr<Pump> pump_among(const std::vector<int>& ranks, PumpEdges edges);
  // What is known of the links between hosts.
  [[nodiscard]] const std::optional<LinkFacts>& slowest_link() const {
    return wiring_.links.slowest_link;
  }

  // What calls can reach of the memory of other ranks.
  [[nodiscard]] Registry& registry() const { return *wiring_.links.registry; }
  // Whether the other ranks can reach this rank's buffers in `call`.
  [[nodiscard]] bool shows_buffers(const Call& call) const {
    return reachable(direct_.locations_of(call));
  }
  [[nodiscard]] const std::vector<int>& ranks_sharing() const {
    return wiring_.links.ranks_sharing;
  }

 private:
  [[nodiscard]] bool is_carried_by_mpi() const;
  void run_checked(const Call& call, const Route& route, const ShownCall& shown);
  // False: not all ranks' buffers are reachable, and `route` names another algorithm for that.
  bool run_by_direct(const Call& call, const Route& route, const ShownCall& shown);
  // Reserves what this rank uses of the segment in calls by `algorithm`, in the first of them. Throws TransportError.
  void reserve_for(Algorithm algorithm);
  void run_by_schedule(const Call& call, Algorithm algorithm, const Signature& signature);
  void run_message(const Call& call, std::chrono::milliseconds timeout);
  void run_sendrecv(const Call& call, std::chrono::milliseconds timeout);
  // Sends and receives, neither of which waits for the other.
  void exchange(const Call& send, const Signature& sent, const Call& recv,
                const Signature& expected);
  // The signature of this rank's next message to, or from, the other one.
  Signature next_message(const Call& message);
  void run_by_one_shot(const Call& call, const Signature& signature);
  // Each owner's chunk is reduced inside its host, then between the hosts, and spread inside the host.
  void run_by_hierarchy(const Call& call, Algorithm between_hosts, const ShownCall& shown);
  void run_between(const Call& call, const Plan& plan, const Signature& signature);
  void run_by_chain(const Call& call, const Signature& signature);
  // Walks the steps of a plan. The buffers are the call's, or scratch memory in place of its output.
  Progress walk(const Call& call, const Plan& plan, const Signature& signature);
  [[nodiscard]] HostCall host_call_of(const Call& call, const Plan& plan,
                                      const Signature& signature) const;
  void tell_unconfirmed(const Confirmation::Unconfirmed& last);
  [[nodiscard]] bool stores_non_temporally(const Call& call) const;
  void drain(const Signature& signature, const Progress& progress);
  // `so_far`: how far this rank came.
  [[noreturn]] void fail(const Signature& signature, const Failure& failure,
                         const std::string& so_far);
  [[noreturn]] void throw_unreachable(const Signature& signature) const;
  [[nodiscard]] std::string text_of_missing(const Signature& signature, const Failure& failure,
                                            const std::string& so_far) const;
  [[nodiscard]] std::string who_is_missing(const Signature& signature) const;
  // In a handler of what a call has thrown: the communicator ends. `buffers`: those that the call showed.
  [[noreturn]] void end_with_thrown(const Signature& signature, const BufferLocations& buffers);
  // In a handler of what a call has thrown: raises the abort board with its text, unless that was done where the error
  // was found. Returns what the caller is to be told.
  std::exception_ptr raise_thrown(const Signature& signature) noexcept;
  [[nodiscard]] std::optional<Failure> who_is_gone() const;
  void raise(const std::string& text) noexcept;
  void throw_if_ended(const Signature& signature);

  Wiring wiring_;
  AbortBoard& board_;
  Waiter waiter_;
  Confirmation confirmation_;
  Touching touching_;
  Direct direct_;
  Inside inside_;
  RingPlace place_;
  RingPlace among_leaders_;
  std::vector<std::uint64_t> borders_;  // of the chunks of the call in progress: see RingPlace
  AlgorithmSet reserved_;               // for which reserve_for has done so
  std::uint64_t sequence_ = 0;
  // Messages so far, by the rank at the other end.
  std::vector<std::uint64_t> messages_to_;
  std::vector<std::uint64_t> messages_from_;
  std::uint64_t one_shots_ = 0;
  std::vector<const std::byte*> contributions_;  // for one_shot: by rank, of the call in progress
  bool told_of_the_end_ = false;                 // a call has thrown why the communicator ended
};

}  // namespace rondo::detail
