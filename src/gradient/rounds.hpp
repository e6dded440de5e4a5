// What ranks do together in one iteration, in calls that all ranks make alike:
//
//   opening   how many samples each rank has, who has joined, and how many passes each made
//   buckets   0, 1, ... in this order, each once its gradients have come on this rank
//   closing   whether any rank did something wrong
//   order     after the first iteration: in which order rank 0's gradients came
//
// A host's reducer makes all of these, on its thread or in finish(). A device's makes the calls of
// buckets in the order of its stream, opens only where samples count, and has no closing, since its
// host waits for nobody.
//
// This class does the work of the rounds; its driver decides when each is due, and on which thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include <rondo/communicator.hpp>

#include "gradient/bucketed_model.hpp"
#include "gradient/opening.hpp"
#include "gradient/recorder.hpp"

namespace rondo::detail {

class Rounds {
 public:
  // Makes the call of a bucket: on a host it has ended on return; on a device it is in the stream's
  // order.
  using MakeCall = std::function<void(std::size_t bucket, const Call& call)>;

  // Borrows both. `host` carries what ranks exchange.
  Rounds(Communicator& host, BucketedModel& model, MakeCall make_call);

  // `background`: this rank still computes. Collective, as the other rounds are.
  void open(const OpeningWords& mine, bool background);
  // Instead of open(), if all ranks know without an exchange that all of them take part.
  void open_with_all();
  [[nodiscard]] const Opening& opening() const { return opening_; }

  // Packs a bucket, makes its call and unpacks it. Sets all times of the result but `filled`.
  BucketRound take(std::size_t bucket);

  // Returns the greatest complaint of all ranks, the same on all.
  Complaint close(const Complaint& mine);

  // The buckets for rank 0's order of arrival; nothing if they are equal to the present ones. After
  // this the order is kept.
  std::optional<std::vector<Bucket>> follow_arrival(std::span<const std::uint32_t> arrival);

  // When all have joined: all take the values of a rank that joined last.
  void take_last_values();

 private:
  void exchange(std::span<std::uint64_t> words, bool background);

  Communicator& host_;
  BucketedModel& model_;
  MakeCall make_call_;
  Opening opening_;
  Averaging averaging_;
};

// Gives all ranks the values of rank `root`, by calls that `run` makes.
void take_values(const BucketedModel& model, int root, const std::function<void(const Call&)>& run);

}  // namespace rondo::detail
