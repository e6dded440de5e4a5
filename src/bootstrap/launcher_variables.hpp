// What launchers say of a process, in the variables that they set.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "bootstrap/launchers.hpp"

namespace rondo::detail {

// The variables of one launcher.
class LauncherVariables {
 public:
  LauncherVariables(const Variables& variables, std::string launcher)
      : variables_(variables), launcher_(std::move(launcher)) {}

  [[nodiscard]] const std::string& launcher() const { return launcher_; }
  // Nothing also if it is empty.
  [[nodiscard]] std::optional<std::string> find(const char* name) const;
  // These throw UsageError if the variable is not set, or is no number.
  [[nodiscard]] std::string text(const char* name) const;
  [[nodiscard]] int number(const char* name) const;
  void require(std::initializer_list<const char*> names) const;

 private:
  const Variables& variables_;
  std::string launcher_;
};

// Where each launcher has put this process. All throw UsageError.
LaunchedRank from_rondo(const LauncherVariables& variables);
LaunchedRank from_torchrun(const LauncherVariables& variables);
LaunchedRank from_open_mpi(const LauncherVariables& variables);
LaunchedRank from_slurm(const LauncherVariables& variables);

// The names of runs; empty where the launcher gives none.
std::string run_of_open_mpi(const LauncherVariables& variables);
std::string run_of_slurm(const LauncherVariables& variables);

// The first host of a list as Slurm writes it: "gpu[03-05,9],login" begins with gpu03.
std::string first_of_slurm_hosts(const std::string& list);

}  // namespace rondo::detail
