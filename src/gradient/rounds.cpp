#include "gradient/rounds.hpp"

#include <utility>

namespace rondo::detail {

Rounds::Rounds(Communicator& host, BucketedModel& model, MakeCall make_call)
    : host_(host),
      model_(model),
      make_call_(std::move(make_call)),
      opening_(host.rank(), host.size()) {}

void Rounds::exchange(std::span<std::uint64_t> words, bool background) {
  Call call = model_.all_reduce(words.data(), words.size(), DataType::u64, ReduceOp::max);
  call.part_of = PartOf::iteration;
  call.options.background = background;
  host_.run(call);
}

void Rounds::open(const OpeningWords& mine, bool background) {
  exchange(opening_.say(mine), background);
  averaging_ = averaging_for(model_.options(), opening_.who());
}

void Rounds::open_with_all() {
  const auto ranks = static_cast<std::uint64_t>(host_.size());
  averaging_ = averaging_for(model_.options(), {ranks, ranks, 0, 0});
}

BucketRound Rounds::take(std::size_t bucket) {
  GradientStore& store = model_.store();
  BucketRound round;
  round.bytes = model_.bytes_of(bucket);
  round.start = round.packed = round.arrived = round.end = Clock::now();
  if (round.bytes == 0) return round;
  store.pack(bucket, averaging_.factor);
  round.packed = Clock::now();
  make_call_(bucket, model_.call_of(bucket, averaging_.op));
  round.arrived = Clock::now();
  store.unpack(bucket);
  round.end = Clock::now();
  return round;
}

Complaint Rounds::close(const Complaint& mine) {
  std::uint64_t word = word_of(mine);
  exchange({&word, 1}, false);
  return complaint_in(word);
}

std::optional<std::vector<Bucket>> Rounds::follow_arrival(std::span<const std::uint32_t> arrival) {
  std::vector<std::uint32_t> order = complete_order(arrival, model_.parameters().size());
  host_.broadcast(order, 0);
  model_.keep_order();
  return model_.other_buckets_for(order);
}

void Rounds::take_last_values() {
  take_values(model_, opening_.last_to_join(), [this](const Call& call) { host_.run(call); });
}

void take_values(const BucketedModel& model, int root,
                 const std::function<void(const Call&)>& run) {
  for (const Parameter& parameter : model.parameters()) {
    if (parameter.value == nullptr || parameter.count == 0) continue;
    Call call = model.all_reduce(parameter.value, parameter.count, parameter.type, ReduceOp::sum);
    call.collective = Collective::broadcast;
    call.root = root;
    run(call);
  }
}

}  // namespace rondo::detail
