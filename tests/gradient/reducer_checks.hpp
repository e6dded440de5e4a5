// A toy model's gradients through a reducer, and what is expected of them.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include <rondo/rondo.hpp>

#include "tests/gradient/toy_model.hpp"
#include "tests/support/errors.hpp"
#include "tests/support/ranks.hpp"

namespace rondo::test {

inline GradientOptions small_buckets(Average average = Average::sum) {
  GradientOptions options;
  options.bucket_bytes = 2_KiB;
  options.average = average;
  return options;
}

inline void expect_in(const std::string& part, const std::string& text) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

class Gradients : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static int ranks() { return GetParam(); }
  static void on_ranks(const std::function<void(Communicator&)>& body) {
    run_ranks(ranks(), {}, body);
  }
};

template <class T>
void backward(GradientReducer& reducer, ToyModel<T>& model, int rank, double factor = 1) {
  for (std::size_t i = model.size(); i-- > 0;) {
    model.compute(rank, i, factor);
    reducer.mark_ready(i, model[i]);
  }
}

template <class T>
void expect_all(ToyModel<T>& model, int ranks, double factor = 1) {
  for (std::size_t i = 0; i < model.size(); ++i) {
    expect_sums<T>(std::span<const T>(model[i]), ranks, i, factor);
  }
}

}  // namespace rondo::test
