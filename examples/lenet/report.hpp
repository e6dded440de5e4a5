// What the trainer shows: a progress bar on a terminal, plain lines elsewhere, and a history file.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "trainer.hpp"

namespace lenet {

class Report {
 public:
  // Only a visible report prints: rank 0's.
  Report(bool visible, int epochs);

  void step(int epoch, std::size_t done, std::size_t all);
  void epoch_done(int epoch, const EpochResult& result);
  void finished(std::uint64_t hash, std::size_t train_samples);

  // {"config", "epochs", "param_hash"}; written beside and then renamed, so that no half file
  // stays.
  void write_history(const std::filesystem::path& file, const nlohmann::json& config,
                     std::uint64_t hash) const;

 private:
  bool visible_;
  bool terminal_;
  int epochs_;
  std::vector<EpochResult> results_;
};

}  // namespace lenet
