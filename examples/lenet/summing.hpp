// How the gradients of a rank on the CPU are summed: by Rondo, bucket by bucket during backprop; by
// MPI, for comparison; or not at all.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <rondo/communicator.hpp>
#include <rondo/gradient_reducer.hpp>
#include <span>
#include <string>
#include <vector>

#include "examples/layers/exchange.hpp"
#include "examples/layers/learner.hpp"

namespace lenet {

// Sums the gradients of all ranks, in place, in host memory.
using SumGradients = std::function<void(std::span<float>)>;

// Sums all gradients at once, after backprop.
Exchange exchange_by(SumGradients sum, ParameterBlock& gradients);

// The parameters with their names and gradients, as a GradientReducer takes them.
std::vector<rondo::Parameter> reducible(ParameterBlock& gradients);

// Sums gradients bucket by bucket, during backprop.
Exchange exchange_by(const std::shared_ptr<rondo::GradientReducer>& reducer);

// A learner on the CPU with what sums its gradients.
struct SummedLearner {
  std::optional<rondo::RegisteredMemory<float>> gradients;
  std::shared_ptr<rondo::GradientReducer> reducer;  // null where Rondo does not sum them
  std::unique_ptr<HostLearner> learner;
};

// Throws std::runtime_error where several ranks would train separately: `comm` has the ranks that
// take other samples, and `algo` is that of the options.
void require_summing(const std::string& algo, rondo::Communicator& comm);

// Collective over `comm`, the ranks that take other samples. `reducing` is how Rondo sums; where it
// is empty, `by_mpi` says whether MPI does.
SummedLearner make_summed_learner(const Task& task, const Dataset& data,
                                  const LearnerOptions& options, rondo::Communicator& comm,
                                  const std::optional<rondo::GradientOptions>& reducing,
                                  bool by_mpi);

// Whether communication during backprop takes less time than after it, on CPUs: on one host it is
// copying, which the reducer's thread can only do beside the computation if there is a core for it.
// Collective; the same on all ranks.
bool overlap_pays(rondo::Communicator& comm, int threads_of_a_rank);

}  // namespace lenet
