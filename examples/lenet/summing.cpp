#include "summing.hpp"

#include <algorithm>
#include <chrono>
#include <rondo/topology.hpp>
#include <stdexcept>
#include <thread>
#include <utility>

#include "mpi_sum.hpp"

namespace lenet {

Exchange exchange_by(SumGradients sum, ParameterBlock& gradients) {
  Exchange exchange;
  exchange.finish = [sum = std::move(sum), &gradients] { sum(gradients.all()); };
  return exchange;
}

std::vector<rondo::Parameter> reducible(ParameterBlock& gradients) {
  std::vector<rondo::Parameter> parameters;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    parameters.push_back(
        rondo::Parameter::gradient_only((*gradients.shapes())[i].name, gradients[i]));
  }
  return parameters;
}

Exchange exchange_by(const std::shared_ptr<rondo::GradientReducer>& reducer) {
  using Clock = std::chrono::steady_clock;
  Exchange exchange;
  const auto last_finish = std::make_shared<Clock::time_point>(Clock::now());
  exchange.begin = [reducer, last_finish] {
    reducer->record_compute("update, load, forward", *last_finish, Clock::now());
  };
  exchange.ready = [reducer](std::size_t parameter) { reducer->mark_ready(parameter); };
  exchange.finish = [reducer, last_finish] {
    reducer->finish();
    *last_finish = Clock::now();
  };
  return exchange;
}

void require_summing(const std::string& algo, rondo::Communicator& comm) {
  if (algo != "none" || comm.size() == 1) return;
  throw std::runtime_error("--algo none is for one rank: several would train separately");
}

SummedLearner make_summed_learner(const Task& task, const Dataset& data,
                                  const LearnerOptions& options, rondo::Communicator& comm,
                                  const std::optional<rondo::GradientOptions>& reducing,
                                  bool by_mpi) {
  SummedLearner summed;
  const auto make_exchange = [&](ParameterBlock& gradients) {
    if (by_mpi) return exchange_by(sum_with_mpi(), gradients);
    if (!reducing) return Exchange();
    summed.gradients = comm.allocate<float>(gradients.all().size());
    gradients.move_to(summed.gradients->span());
    summed.reducer =
        std::make_shared<rondo::GradientReducer>(comm, reducible(gradients), *reducing);
    return exchange_by(summed.reducer);
  };
  summed.learner = make_cpu_learner(task, data, options, {comm.rank(), comm.size()}, make_exchange);
  return summed;
}

bool overlap_pays(rondo::Communicator& comm, int threads_of_a_rank) {
  const auto& places = comm.topology().places;
  const bool one_host = std::all_of(places.begin(), places.end(), [&](const auto& place) {
    return rondo::on_one_host(place, places.front());
  });
  const auto cores =
      static_cast<int>(std::thread::hardware_concurrency());  // that this rank may use
  std::vector<int> pays = {!one_host || cores > comm.size() * threads_of_a_rank ? 1 : 0};
  comm.all_reduce(pays, rondo::ReduceOp::min);
  return pays[0] != 0;
}

}  // namespace lenet
