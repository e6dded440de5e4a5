#include "exchange.hpp"

#include <chrono>
#include <string>
#include <utility>

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

}  // namespace lenet
