#include "tools/overlap/figures.hpp"

#include <algorithm>
#include <cmath>

namespace rondo::overlap {

Spread spread_of(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const auto at = [&](double part) {
    return times[static_cast<std::size_t>(
        std::lround(part * static_cast<double>(times.size() - 1)))];
  };
  return {at(0.5), at(0.05), at(0.95)};
}

Figures figures_of(double alone_us, double after_us, double during_us) {
  Figures figures{alone_us, after_us - alone_us, 0};
  if (figures.communication_us > 0) {
    figures.hidden = 1 - (during_us - alone_us) / figures.communication_us;
  }
  return figures;
}

double most_hidden(const std::vector<ReadyBucket>& buckets, const Figures& figures) {
  double bytes = 0;
  for (const ReadyBucket& bucket : buckets) bytes += static_cast<double>(bucket.bytes);
  if (bytes <= 0 || figures.communication_us <= 0) return 0;
  double end = 0;
  for (const ReadyBucket& bucket : buckets) {
    end = std::max(end, bucket.ready_us) +
          figures.communication_us * static_cast<double>(bucket.bytes) / bytes;
  }
  return 1 - (std::max(end, figures.alone_us) - figures.alone_us) / figures.communication_us;
}

}  // namespace rondo::overlap
