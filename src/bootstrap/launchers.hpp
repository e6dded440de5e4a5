// Where a launcher has put this process, from the environment variables that it sets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rondo::detail {

// The value of an environment variable, nothing if it is unset.
using Variables = std::function<std::optional<std::string>(const char* name)>;

struct LaunchedRank {
  std::string launcher;  // empty: this process was started alone
  int rank = 0;
  int size = 1;
  std::string url;  // for from_store(); empty if size is 1
  // What names the run, where a launcher does: ranks of two runs that are given the same address do
  // not belong together.
  std::string run;
  // Where the launcher names no address: the ports that rank 0 may have, the URL's first.
  std::vector<std::uint16_t> ports;
};

// In this order: rondo-launch (or whoever sets RONDO_RANK), torchrun, Open MPI, Slurm. If none of
// them started this process, it is alone. Throws UsageError that names a variable which is missing
// (also where only a part of a launcher's is set) or cannot be understood, for a process that
// another launcher started, and if two of them contradict each other, neither of which may have
// started the other.
LaunchedRank launched_rank(const Variables& variables);

// For a process that MPI says is alone: why it is not, if a launcher has started several. Each of
// them would then work alone without a word. Empty if no launcher says so, or if MPI's own launcher
// says that the process is alone.
std::string objection_to_mpi_alone(const Variables& variables);

}  // namespace rondo::detail
