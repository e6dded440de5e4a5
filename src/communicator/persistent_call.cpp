#include <rondo/persistent_call.hpp>

#include <utility>

#include <rondo/communicator.hpp>

#include "communicator/plan_on_host.hpp"
#include "communicator/prepared_call.hpp"

namespace rondo {

PersistentCall Communicator::prepare(const Call& call) {
  auto prepared = std::make_unique<detail::PreparedCall>(detail::PreparedCall{
      state_, user_, detail::CallArguments(call, size()), detail::plan_on_host(*state_, call)});
  prepared->arguments.lend_to(prepared->planned.call);
  return PersistentCall(std::move(prepared));
}

PersistentCall::PersistentCall(std::unique_ptr<detail::PreparedCall> prepared)
    : prepared_(std::move(prepared)) {}
PersistentCall::PersistentCall(PersistentCall&&) noexcept = default;
PersistentCall& PersistentCall::operator=(PersistentCall&&) noexcept = default;
PersistentCall::~PersistentCall() = default;

void PersistentCall::run() {
  detail::CommunicatorState& state = *prepared_->state;
  detail::prepare_to_run(state, prepared_->planned.call, prepared_->user);
  state.queue.run([&planned = prepared_->planned, &engine = state.engine] { engine.run(planned); });
}

Work PersistentCall::start() {
  detail::CommunicatorState& state = *prepared_->state;
  return detail::enqueue(
      state, prepared_->planned.call, prepared_->user,
      [&planned = prepared_->planned, &engine = state.engine] { engine.run(planned); });
}

}  // namespace rondo
