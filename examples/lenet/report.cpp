#include "report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace lenet {
namespace {

// Whether the output goes to a terminal. A launcher may give its processes a terminal although its
// own output goes to a file, so the launcher's output must be a terminal too, if /proc shows where
// it goes.
bool watched() {
  if (::isatty(STDOUT_FILENO) == 0) return false;
  std::error_code error;
  const auto parents = std::filesystem::read_symlink(
      fmt::format("/proc/{}/fd/{}", ::getppid(), STDOUT_FILENO), error);
  return error || parents.string().starts_with("/dev/pts/") ||
         parents.string().starts_with("/dev/tty");
}

}  // namespace

Report::Report(bool visible, int epochs, bool by_ring)
    : visible_(visible), terminal_(visible && watched()), epochs_(epochs), by_ring_(by_ring) {}

void Report::step(int epoch, std::size_t done, std::size_t all) {
  constexpr std::size_t kWidth = 30;
  if (!terminal_) return;
  const std::size_t full = done * kWidth / all;
  fmt::print("\repoch {:>2}/{} [{}{}] {}/{}", epoch, epochs_, std::string(full, '#'),
             std::string(kWidth - full, '.'), done, all);
  std::fflush(stdout);
}

void Report::epoch_done(int epoch, const EpochResult& result) {
  results_.push_back(result);
  if (!visible_) return;
  fmt::print(
      "{}epoch {:>2}/{}  {:6.2f} s  loss {:.4f}  train accuracy {:.4f}  test accuracy {:.4f}\n",
      terminal_ ? "\r\033[K" : "", epoch, epochs_, result.seconds, result.train_loss,
      result.train_accuracy, result.test_accuracy);
  std::fflush(stdout);
}

void Report::finished(std::uint64_t hash, std::size_t train_samples) {
  if (!visible_ || results_.empty()) return;
  const auto mean_of = [&](double EpochResult::* figure) {
    double sum = 0;
    for (const EpochResult& result : results_) sum += result.*figure;
    return sum / static_cast<double>(results_.size());
  };
  const double mean = mean_of(&EpochResult::seconds);
  fmt::print("\n{:<22}{}\n", "epochs", results_.size());
  fmt::print("{:<22}{:.2f} (mean), {:.2f} in all\n", "seconds an epoch", mean,
             mean * static_cast<double>(results_.size()));
  fmt::print("{:<22}{:.0f}\n", "samples a second", static_cast<double>(train_samples) / mean);
  fmt::print("{:<22}{:.2f}\n", "seconds to evaluate", results_.back().evaluation_seconds);
  fmt::print("{:<22}{:.1f}{}\n", "MB sent an epoch", mean_of(&EpochResult::sent_bytes) / 1e6,
             by_ring_ ? ", if they go by the ring" : "");
  if (const double bytes = mean_of(&EpochResult::part_bytes); bytes > 0) {
    fmt::print("{:<22}{:.1f}\n", "and to other parts", bytes / 1e6);
  }
  std::string shares;
  for (const double share : results_.back().shares) shares += fmt::format(" {:.3f}", share);
  if (!shares.empty()) fmt::print("{:<22}{}\n", "shares of the ranks", shares.substr(1));
  fmt::print("{:<22}{:.4f}\n", "train loss", results_.back().train_loss);
  fmt::print("{:<22}{:.4f}\n", "test accuracy", results_.back().test_accuracy);
  fmt::print("{:<22}{:016x}, equal on all ranks\n", "hash of parameters", hash);
}

void print(const Staleness& staleness) {
  fmt::print("{:<22}{} (of all servers)\n", "updates", staleness.number());
  fmt::print("{:<22}{:.2f} (mean), {} (greatest)\n", "staleness", staleness.mean(),
             staleness.greatest);
  std::string bins;
  for (std::size_t i = 0; i < Staleness::kBins; ++i) {
    if (staleness.updates[i] == 0) continue;
    bins += fmt::format("{}{}: {}", bins.empty() ? "" : ", ", i, staleness.updates[i]);
  }
  fmt::print("{:<22}{}\n", "updates by staleness", bins);
}

}  // namespace lenet
