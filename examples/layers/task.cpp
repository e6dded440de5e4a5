#include "task.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace lenet {
namespace {

void require_fit(const Task& task, const Samples& samples, const char* which) {
  if (samples.count() == 0) {
    throw std::runtime_error(fmt::format("{} has no {} samples", task.name, which));
  }
  if (samples.input_elems != task.input_elems) {
    throw std::runtime_error(
        fmt::format("the {} samples of {} have {} numbers each, but the model takes {}", which,
                    task.name, samples.input_elems, task.input_elems));
  }
  const auto wrong = std::find_if(samples.labels.begin(), samples.labels.end(),
                                  [&](std::uint8_t label) { return label >= task.classes; });
  if (wrong != samples.labels.end()) {
    throw std::runtime_error(
        fmt::format("{} sample {} of {} is of class {}, but the model knows {} classes, from 0 on",
                    which, wrong - samples.labels.begin(), task.name, *wrong, task.classes));
  }
}

}  // namespace

void require_fit(const Task& task, const Dataset& data) {
  require_fit(task, data.train, "training");
  require_fit(task, data.test, "test");
}

}  // namespace lenet
