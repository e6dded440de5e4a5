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

Progress::Progress(bool visible, int epochs)
    : visible_(visible), terminal_(visible && watched()), epochs_(epochs) {}

void Progress::step(int epoch, std::size_t done, std::size_t all) const {
  constexpr std::size_t kWidth = 30;
  if (!terminal_) return;
  const std::size_t full = done * kWidth / all;
  fmt::print("\repoch {:>2}/{} [{}{}] {}/{}", epoch, epochs_, std::string(full, '#'),
             std::string(kWidth - full, '.'), done, all);
  std::fflush(stdout);
}

void Progress::epoch_done(int epoch, const EpochResult& result) const {
  if (!visible_) return;
  fmt::print(
      "{}epoch {:>2}/{}  {:6.2f} s  loss {:.4f}  train accuracy {:.4f}  test accuracy {:.4f}\n",
      terminal_ ? "\r\033[K" : "", epoch, epochs_, result.seconds, result.train_loss,
      result.train_accuracy, result.test_accuracy);
  std::fflush(stdout);
}

void print(const Run& run, std::size_t train_samples, const char* how_sent) {
  if (run.results.empty()) return;
  const auto mean_of = [&](double EpochResult::* figure) {
    double sum = 0;
    for (const EpochResult& result : run.results) sum += result.*figure;
    return sum / static_cast<double>(run.results.size());
  };
  const double mean = mean_of(&EpochResult::seconds);
  const EpochResult& last = run.results.back();
  fmt::print("\n{:<22}{}\n", "epochs", run.results.size());
  fmt::print("{:<22}{:.2f} (mean), {:.2f} in all\n", "seconds an epoch", mean,
             mean * static_cast<double>(run.results.size()));
  fmt::print("{:<22}{:.0f}\n", "samples a second", static_cast<double>(train_samples) / mean);
  fmt::print("{:<22}{:.2f}\n", "seconds to evaluate", last.evaluation_seconds);
  fmt::print("{:<22}{:.1f}{}\n", "MB sent an epoch", mean_of(&EpochResult::sent_bytes) / 1e6,
             how_sent);
  fmt::print("{:<22}{:.4f}\n", "train loss", last.train_loss);
  fmt::print("{:<22}{:.4f}\n", "test accuracy", last.test_accuracy);
  fmt::print("{:<22}{:016x}, equal on all ranks\n", "hash of parameters", run.hash);
}

}  // namespace lenet
