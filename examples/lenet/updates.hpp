// How the ranks make the steps of an epoch. This is where another system than all-reduce begins:
// examples/systems/ derives its own from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <rondo/communicator.hpp>
#include <span>

#include "examples/layers/learner.hpp"

namespace lenet {

struct Epoch {
  std::span<const std::uint32_t> order;  // of the training samples
  std::size_t steps = 0;
  std::size_t steps_before = 0;  // of all epochs before this one
};

using OnStep = std::function<void(std::size_t done, std::size_t all)>;

// Borrows all that it is given. Here every learner sums its gradients with those of all ranks.
class Updates {
 public:
  // `element_bytes`: of a gradient's element as it is sent.
  Updates(rondo::Communicator& comm, Learner& learner, std::size_t element_bytes = sizeof(float));
  Updates(const Updates&) = delete;
  Updates& operator=(const Updates&) = delete;
  virtual ~Updates() = default;

  // Collective. Gives all learners rank 0's parameters.
  virtual void begin(ParameterBlock& parameters);
  // Collective, after Learner::begin_epoch. Calls `on_step` after each minibatch. Returns the bytes
  // of gradients and parameters that this rank has sent: if they are summed, as if by the ring.
  virtual double run_epoch(const Epoch& epoch, const OnStep& on_step);

 protected:
  [[nodiscard]] rondo::Communicator& comm() { return comm_; }
  // Returns what a rank sends in a step, if its gradients are summed.
  [[nodiscard]] double gradient_bytes() const { return gradient_bytes_; }

 private:
  rondo::Communicator& comm_;
  Learner& learner_;
  double gradient_bytes_;
};

// Returns what each of `ranks` sends when a vector of `bytes` is summed by the ring.
double ring_bytes(int ranks, std::size_t bytes);

}  // namespace lenet
