#include "shares.hpp"

#include <algorithm>
#include <numeric>
#include <span>

namespace lenet::systems {

std::vector<double> normalised(std::vector<double> shares) {
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

// A rank that was dealt nothing keeps the speed that it had; one that was never measured counts as
// the fastest.
std::vector<double> MeasuredShares::measure() {
  const Computed computed = learner_.computed();
  const double speed = computed.timed_samples == 0
                           ? 0
                           : static_cast<double>(computed.timed_samples) / computed.seconds;
  std::vector<double> speeds(static_cast<std::size_t>(comm_.size()));
  comm_.all_gather(std::span(&speed, 1), speeds);
  speeds_.resize(speeds.size());
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    if (speeds[rank] > 0) speeds_[rank] = speeds[rank];
  }
  const double fastest = *std::max_element(speeds_.begin(), speeds_.end());
  if (fastest == 0) return {};
  std::vector<double> shares;
  for (const double one : speeds_) shares.push_back(one == 0 ? fastest : one);
  shares = normalised(std::move(shares));
  learner_.set_shares(shares);
  return shares;
}

}  // namespace lenet::systems
