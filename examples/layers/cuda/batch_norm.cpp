#include "batch_norm.hpp"

namespace lenet::cuda {

BatchNorm::BatchNorm(int of_channels)
    : channels(of_channels),
      mean(static_cast<std::size_t>(of_channels)),
      variance(static_cast<std::size_t>(of_channels)) {
  const std::vector<float> ones(variance.count(), 1.0F);
  check(
      cudaMemcpy(variance.get(), ones.data(), ones.size() * sizeof(float), cudaMemcpyHostToDevice));
}

BatchNormPass::BatchNormPass(const Dims& dims)
    : layout_{dims.n, dims.c, dims.pixels()},
      partial_sums_(partial_sums_of(dims.c)),
      sums_(2 * static_cast<std::size_t>(dims.c) + 1),
      mean_(static_cast<std::size_t>(dims.c)),
      one_over_deviation_(static_cast<std::size_t>(dims.c)) {}

void BatchNormPass::train(const Libraries& on, const BatchNorms& norms, const BatchNorm& norm,
                          const float* input, const float* gamma, const float* beta,
                          float* output) const {
  sum_squares(layout_, input, partial_sums_.get(), sums_.get(), on.stream);
  if (norms.sum_over_ranks) norms.sum_over_ranks(sums_.get(), sums_count());
  take_statistics(layout_.channels, sums_.get(), {mean_.get(), one_over_deviation_.get()},
                  norm.mean.get(), norm.variance.get(), on.stream);
  normalise(layout_, {mean_.get(), one_over_deviation_.get()}, input, gamma, beta, output,
            on.stream);
  check(cudaGetLastError());
}

void BatchNormPass::evaluate(const Libraries& on, const BatchNorm& norm, const float* input,
                             const float* gamma, const float* beta, float* output) const {
  take_moving_averages(layout_.channels, norm.mean.get(), norm.variance.get(),
                       {mean_.get(), one_over_deviation_.get()}, on.stream);
  normalise(layout_, {mean_.get(), one_over_deviation_.get()}, input, gamma, beta, output,
            on.stream);
  check(cudaGetLastError());
}

void BatchNormPass::backward(const Libraries& on, const BatchNorms& norms, const float* input,
                             const float* gamma, const float* output_slopes, bool adds,
                             float* input_slopes, float* gamma_slopes, float* beta_slopes) const {
  const Statistics statistics{mean_.get(), one_over_deviation_.get()};
  sum_slopes(layout_, statistics, input, output_slopes, partial_sums_.get(), sums_.get(),
             gamma_slopes, beta_slopes, on.stream);
  if (norms.sum_over_ranks) norms.sum_over_ranks(sums_.get(), sums_count());
  slopes_through_norm(layout_, statistics, sums_.get(), input, gamma, output_slopes, adds,
                      input_slopes, on.stream);
  check(cudaGetLastError());
}

}  // namespace lenet::cuda
