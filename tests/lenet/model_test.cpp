// The model's loss against that of a plain LeNet in double, and its gradients against finite
// differences of the plain LeNet's loss.

#include "examples/layers/idx.hpp"
#include "examples/lenet/lenet_shapes.hpp"
#include "examples/lenet/task.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lenet {
namespace {

using Values = std::vector<double>;

// The articles' LeNet with loops.
class PlainLeNet {
 public:
  explicit PlainLeNet(ParameterBlock& parameters) {
    for (std::size_t p = 0; p < kParameterCount; ++p) {
      parameters_.emplace_back(parameters[p].begin(), parameters[p].end());
    }
  }

  double& parameter(std::size_t which, std::size_t index) { return parameters_[which][index]; }

  // The loss summed over the samples.
  [[nodiscard]] double loss(const std::vector<float>& images,
                            const std::vector<std::uint8_t>& labels) const {
    double sum = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const Values image(images.begin() + static_cast<std::ptrdiff_t>(i * kImagePixels),
                         images.begin() + static_cast<std::ptrdiff_t>((i + 1) * kImagePixels));
      const Values first = pool(relu(convolve(image, 1, 28, kW1, 20, 3)), 20, 26);
      const Values second = pool(relu(convolve(first, 20, 13, kW2, 50, 5)), 50, 9);
      const Values logits = dense(relu(dense(second, kW3, 128)), kW4, 10);
      double normaliser = 0;
      for (const double logit : logits) normaliser += std::exp(logit);
      sum += std::log(normaliser) - logits[labels[i]];
    }
    return sum;
  }

 private:
  static Values relu(Values values) {
    for (double& value : values) value = std::max(value, 0.0);
    return values;
  }

  // parameters_[weights + 1] is the bias.
  [[nodiscard]] Values convolve(const Values& in, std::size_t channels, std::size_t side,
                                std::size_t weights, std::size_t outputs,
                                std::size_t kernel) const {
    const std::size_t out_side = side - kernel + 1;
    const Values& w = parameters_[weights];
    Values out(outputs * out_side * out_side);
    for (std::size_t o = 0; o < outputs; ++o) {
      for (std::size_t y = 0; y < out_side; ++y) {
        for (std::size_t x = 0; x < out_side; ++x) {
          double sum = parameters_[weights + 1][o];
          for (std::size_t c = 0; c < channels; ++c) {
            for (std::size_t i = 0; i < kernel; ++i) {
              for (std::size_t j = 0; j < kernel; ++j) {
                sum += in[(c * side + y + i) * side + x + j] *
                       w[((o * channels + c) * kernel + i) * kernel + j];
              }
            }
          }
          out[(o * out_side + y) * out_side + x] = sum;
        }
      }
    }
    return out;
  }

  static Values pool(const Values& in, std::size_t channels, std::size_t side) {
    const std::size_t out_side = side / 2;
    Values out(channels * out_side * out_side);
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t y = 0; y < out_side; ++y) {
        for (std::size_t x = 0; x < out_side; ++x) {
          const std::size_t corner = (c * side + 2 * y) * side + 2 * x;
          out[(c * out_side + y) * out_side + x] =
              (in[corner] + in[corner + 1] + in[corner + side] + in[corner + side + 1]) / 4;
        }
      }
    }
    return out;
  }

  [[nodiscard]] Values dense(const Values& in, std::size_t weights, std::size_t outputs) const {
    Values out = parameters_[weights + 1];
    for (std::size_t i = 0; i < in.size(); ++i) {
      for (std::size_t o = 0; o < outputs; ++o)
        out[o] += in[i] * parameters_[weights][i * outputs + o];
    }
    return out;
  }

  std::vector<Values> parameters_;
};

struct Fixture {
  ParameterBlock parameters{lenet_shapes()};
  ParameterBlock gradients{lenet_shapes()};
  std::vector<float> images;
  std::vector<std::uint8_t> labels;

  explicit Fixture(std::size_t samples) {
    std::mt19937 random(11);
    // Larger than in training, so that every gradient is well above rounding.
    std::normal_distribution<float> normal(0.0F, 0.1F);
    for (float& value : parameters.all()) value = normal(random);
    std::uniform_real_distribution<float> pixel(0.0F, 1.0F);
    for (std::size_t i = 0; i < samples * kImagePixels; ++i) images.push_back(pixel(random));
    for (std::size_t i = 0; i < samples; ++i)
      labels.push_back(static_cast<std::uint8_t>(i * 3 % 10));
  }
};

BatchResult compute(Model& model, std::span<const float> images,
                    std::span<const std::uint8_t> labels) {
  return model.forward_backward(images, labels, [] {}, [](std::size_t) {});
}

TEST(Model, HasAsManyParametersAsTheArticles) {
  ParameterBlock parameters(lenet_shapes());
  EXPECT_EQ(parameters.all().size(), 129068U);
  EXPECT_EQ(parameters.all().size_bytes(), 516272U);
}

TEST(Model, LossAgreesWithThePlainOne) {
  Fixture f(5);
  const auto model = lenet_task().make_model(f.parameters, f.gradients, {});
  const double expected = PlainLeNet(f.parameters).loss(f.images, f.labels);
  EXPECT_NEAR(model->forward(f.images, f.labels).loss, expected, 1e-4 * expected);
}

TEST(Model, GradientsAgreeWithFiniteDifferencesInDouble) {
  Fixture f(3);
  const auto model = lenet_task().make_model(f.parameters, f.gradients, {});
  compute(*model, f.images, f.labels);
  constexpr double kStep = 1e-6;
  std::mt19937 random(5);
  for (std::size_t which = 0; which < kParameterCount; ++which) {
    for (int sample = 0; sample < 12; ++sample) {
      const std::size_t index = random() % (*lenet_shapes())[which].count();
      PlainLeNet plain(f.parameters);
      const double value = plain.parameter(which, index);
      plain.parameter(which, index) = value + kStep;
      const double above = plain.loss(f.images, f.labels);
      plain.parameter(which, index) = value - kStep;
      const double below = plain.loss(f.images, f.labels);
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(f.gradients[which][index], expected, 1e-5 + 1e-3 * std::abs(expected))
          << (*lenet_shapes())[which].name << "[" << index << "]";
    }
  }
}

TEST(Model, BatchSizesMayChangeAndGradientsAreSums) {
  Fixture f(6);
  const auto model = lenet_task().make_model(f.parameters, f.gradients, {});
  compute(*model, f.images, f.labels);
  const std::vector<float> whole(f.gradients.all().begin(), f.gradients.all().end());
  std::vector<double> sum(whole.size());
  for (const auto& [begin, count] : {std::pair{0U, 2U}, std::pair{2U, 4U}}) {
    compute(*model, std::span(f.images).subspan(begin * kImagePixels, count * kImagePixels),
            std::span(f.labels).subspan(begin, count));
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += static_cast<double>(f.gradients.all()[i]);
  }
  for (std::size_t i = 0; i < sum.size(); ++i) {
    ASSERT_NEAR(whole[i], sum[i], 1e-4 + 1e-4 * std::abs(sum[i])) << i;
  }
}

TEST(Model, AnEmptyBatchHasNoGradient) {
  Fixture f(1);
  const auto model = lenet_task().make_model(f.parameters, f.gradients, {});
  compute(*model, f.images, f.labels);
  EXPECT_EQ(compute(*model, {}, {}).loss, 0);
  for (const float value : f.gradients.all()) ASSERT_EQ(value, 0.0F);
}

}  // namespace
}  // namespace lenet
