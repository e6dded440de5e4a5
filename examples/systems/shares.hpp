// In which proportion minibatches are dealt to the ranks.
#pragma once

#include <rondo/communicator.hpp>
#include <vector>

#include "examples/layers/learner.hpp"

namespace lenet::systems {

// The same proportion, with the sum 1.
std::vector<double> normalised(std::vector<double> shares);

// Shares that follow how fast each rank computed in the epoch before.
class MeasuredShares {
 public:
  // Borrows both.
  MeasuredShares(rondo::Communicator& comm, HostLearner& learner)
      : comm_(comm), learner_(learner) {}

  // Collective, after an epoch: sets the learner's shares for the next one, and returns them; empty
  // as long as nothing has been measured.
  std::vector<double> measure();

 private:
  rondo::Communicator& comm_;
  HostLearner& learner_;
  std::vector<double> speeds_;  // samples a second of each rank; 0: not measured yet
};

}  // namespace lenet::systems
