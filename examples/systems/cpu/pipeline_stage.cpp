#include "pipeline_stage.hpp"

#include <algorithm>
#include <utility>

namespace lenet::systems {

PipelineStage::PipelineStage(ParameterBlock& parameters, ParameterBlock& gradients,
                             std::function<void(Graph&)> build, std::shared_ptr<Parts> parts,
                             std::size_t micro_batches)
    : parameters_(parameters),
      gradients_(gradients),
      added_(gradients.shapes()),
      build_(std::move(build)),
      parts_(std::move(parts)),
      micro_batches_(micro_batches) {}

Graph& PipelineStage::graph_for(std::size_t batch, Purpose purpose, std::size_t number) {
  std::unique_ptr<Graph>& graph =
      (purpose == Purpose::training ? training_.at(number % 2) : evaluation_)[batch];
  if (!graph) {
    graph = std::make_unique<Graph>(batch, purpose, parameters_, added_, norms_);
    build_(*graph);
  }
  return *graph;
}

void PipelineStage::forget_sizes() {
  for (auto& graphs : training_) graphs.clear();
  evaluation_.clear();
}

std::vector<PipelineStage::MicroBatch> PipelineStage::cut(
    std::span<const float> inputs, std::span<const std::uint8_t> labels) const {
  const std::size_t input_elems = inputs.size() / labels.size();
  const auto count = static_cast<int>(std::min(micro_batches_, labels.size()));
  std::vector<MicroBatch> batches;
  for (int i = 0; i < count; ++i) {
    const PartRange range = part_of(labels.size(), i, count);
    batches.push_back({inputs.subspan(range.first * input_elems, range.count * input_elems),
                       labels.subspan(range.first, range.count)});
  }
  return batches;
}

GradientReady PipelineStage::adding(bool last, const GradientReady& ready) {
  return [this, last, &ready](std::size_t parameter) {
    const std::span<float> sums = gradients_[parameter];
    const std::span<const float> terms = added_[parameter];
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += terms[i];
    if (last) ready(parameter);
  };
}

void PipelineStage::run_first(const std::vector<MicroBatch>& batches,
                              const std::function<void()>& begin, const GradientReady& ready) {
  const auto forward = [&](std::size_t i) {
    return graph_for(batches[i].labels.size(), Purpose::training, i).forward(batches[i].inputs);
  };
  parts_->send(forward(0), 1);
  std::span<const float> next;
  if (batches.size() > 1) next = forward(1);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Graph& graph = graph_for(batches[i].labels.size(), Purpose::training, i);
    received_.resize(graph.output_elements());
    const bool last = i + 1 == batches.size();
    if (last) {
      parts_->recv(std::span(received_), 1);
      begin();
    } else {
      parts_->sendrecv(next, received_, 1);
    }
    graph.backward(received_, adding(last, ready));
    if (i + 2 < batches.size()) next = forward(i + 2);
  }
}

BatchResult PipelineStage::run_second(const std::vector<MicroBatch>& batches,
                                      const std::function<void()>& begin,
                                      const GradientReady& ready) {
  const auto graph_of = [&](std::size_t i) -> Graph& {
    return graph_for(batches[i].labels.size(), Purpose::training, 0);
  };
  BatchResult sum;
  received_.resize(graph_of(0).input_elements());
  parts_->recv(std::span(received_), 0);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    Graph& graph = graph_of(i);
    const bool last = i + 1 == batches.size();
    const BatchResult result = graph.forward(received_, batches[i].labels);
    sum.loss += result.loss;
    sum.correct += result.correct;
    if (last) begin();
    graph.backward(batches[i].labels, adding(last, ready));
    if (last) {
      parts_->send(graph.input_slopes(), 0);
    } else {
      received_.resize(graph_of(i + 1).input_elements());
      parts_->sendrecv(graph.input_slopes(), received_, 0);
    }
  }
  return sum;
}

// The second stage knows the result; the first gets it.
BatchResult PipelineStage::agreed(BatchResult result) {
  std::array<double, 2> values = {result.loss, static_cast<double>(result.correct)};
  if (parts_->part() == 0) {
    parts_->recv(std::span<double>(values), 1);
  } else {
    parts_->send(std::span<const double>(values), 0);
  }
  return {values[0], static_cast<std::int64_t>(values[1])};
}

BatchResult PipelineStage::forward_backward(std::span<const float> inputs,
                                            std::span<const std::uint8_t> labels,
                                            const std::function<void()>& begin,
                                            const GradientReady& ready) {
  std::fill(gradients_.all().begin(), gradients_.all().end(), 0.0F);
  const auto begin_backprop = [&] {
    begin();
    for (std::size_t i = gradients_.size(); i-- > 0;) {
      // Those of the other stage have no elements here.
      if (labels.empty() || gradients_[i].empty()) ready(i);
    }
  };
  if (labels.empty()) {
    begin_backprop();
    return {};
  }
  const std::vector<MicroBatch> batches = cut(inputs, labels);
  if (parts_->part() == 1) return agreed(run_second(batches, begin_backprop, ready));
  run_first(batches, begin_backprop, ready);
  return agreed({});
}

BatchResult PipelineStage::forward(std::span<const float> inputs,
                                   std::span<const std::uint8_t> labels) {
  if (labels.empty()) return {};
  Graph& graph = graph_for(labels.size(), Purpose::evaluation, 0);
  if (parts_->part() == 0) {
    parts_->send(graph.forward(inputs), 1);
    return agreed({});
  }
  received_.resize(graph.input_elements());
  parts_->recv(std::span(received_), 0);
  return agreed(graph.forward(received_, labels));
}

}  // namespace lenet::systems
