#include "bootstrap/launchers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "bootstrap/launcher_variables.hpp"

namespace rondo::detail {
namespace {

constexpr const char* kOtherMpi =
    "the program was built with another MPI than the launcher's; start it with its own MPI's "
    "mpirun";
constexpr const char* kNoMpi =
    "this launcher starts no MPI; start the program with mpirun, or join by "
    "rondo::from_environment()";

// What a launcher starts. A batch system gives its variables to all that runs in one of its steps:
// to mpirun, say, or to a script that starts torchrun.
enum class Starts : std::uint8_t { processes, mpi_processes, steps };

// The launcher is known by variables that it always sets. WORLD_SIZE alone is no sign of torchrun:
// scripts for Slurm export it, and leave it to PyTorch to take the rank from Slurm.
struct Launcher {
  const char* name;
  std::array<const char*, 2> signs;
  LaunchedRank (*read)(const LauncherVariables&);  // null: Rondo cannot join its processes
  const char* rank;
  const char* size;  // how many processes it has started; null: it does not say
  Starts starts;
  const char* cure;  // where MPI does not see them
};
constexpr Launcher kLaunchers[] = {
    {"rondo-launch",
     {"RONDO_RANK", "RONDO_RANK"},
     from_rondo,
     "RONDO_RANK",
     "RONDO_SIZE",
     Starts::processes,
     kNoMpi},
    {"torchrun",
     {"RANK", "WORLD_SIZE"},
     from_torchrun,
     "RANK",
     "WORLD_SIZE",
     Starts::processes,
     kNoMpi},
    {"Open MPI",
     {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"},
     from_open_mpi,
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     Starts::mpi_processes,
     kOtherMpi},
    {"Slurm",
     {"SLURM_STEP_ID", "SLURM_STEP_ID"},
     from_slurm,
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     Starts::steps,
     "srun started them without MPI; use srun --mpi=pmix, or the plugin that this MPI needs"},
    {"mpiexec",
     {"PMI_RANK", "PMI_SIZE"},
     nullptr,
     "PMI_RANK",
     "PMI_SIZE",
     Starts::mpi_processes,
     kOtherMpi},
    {"MVAPICH2",
     {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
     nullptr,
     "MV2_COMM_WORLD_RANK",
     "MV2_COMM_WORLD_SIZE",
     Starts::mpi_processes,
     kOtherMpi},
    {"jsrun",
     {"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
     nullptr,
     "JSM_NAMESPACE_RANK",
     "JSM_NAMESPACE_SIZE",
     Starts::steps,
     kOtherMpi},
    {"Flux",
     {"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
     nullptr,
     "FLUX_TASK_RANK",
     "FLUX_JOB_SIZE",
     Starts::steps,
     kOtherMpi},
    {"horovodrun",
     {"HOROVOD_RANK", "HOROVOD_SIZE"},
     nullptr,
     "HOROVOD_RANK",
     "HOROVOD_SIZE",
     Starts::processes,
     kNoMpi},
    {"PALS",
     {"PALS_RANKID", "PALS_RANKID"},
     nullptr,
     "PALS_RANKID",
     nullptr,
     Starts::steps,
     kOtherMpi},
    // Many launchers set these. Where a launcher above is known by its own variables, these say
    // nothing more.
    {"PMIx", {"PMIX_RANK", "PMIX_RANK"}, nullptr, "PMIX_RANK", nullptr, Starts::steps, kOtherMpi},
    {"PMI", {"PMI_RANK", "PMI_RANK"}, nullptr, "PMI_RANK", nullptr, Starts::steps, kOtherMpi},
};

bool has_started_this(const Launcher& launcher, const Variables& variables) {
  return variables(launcher.signs[0]) && variables(launcher.signs[1]);
}

bool says_that_it_is_alone(const Launcher& launcher, const Variables& variables) {
  return launcher.size != nullptr && variables(launcher.size) == "1";
}

std::string quote(const Launcher& launcher, const Variables& variables) {
  std::string text =
      fmt::format("{}={}", launcher.rank, variables(launcher.rank).value_or("unset"));
  if (launcher.size != nullptr) {
    text += fmt::format(" and {}={}", launcher.size, variables(launcher.size).value_or("unset"));
  }
  return text + " by " + launcher.name;
}

std::string how_to_unset(const Launcher& launcher) {
  std::string text = fmt::format("env -u {} ", launcher.rank);
  if (launcher.size != nullptr) text += fmt::format("-u {} ", launcher.size);
  return text + "...";
}

// Whether its variables say the same rank and size, as far as they say them. Compares texts, since
// those of another launcher may be no numbers.
bool says(const Launcher& launcher, const Variables& variables, const LaunchedRank& launched) {
  return variables(launcher.rank) == std::to_string(launched.rank) &&
         (launcher.size == nullptr || variables(launcher.size) == std::to_string(launched.size));
}

// Whether a batch system has set these variables for what runs in its step. Some set those of other
// launchers, too: Slurm and Flux PMI_RANK and PMI_SIZE, jsrun those of Open MPI. Such variables say
// the same as the batch system's own.
bool is_of_step(const Launcher& launcher, const Variables& variables) {
  if (launcher.starts == Starts::steps) return true;
  return std::any_of(std::begin(kLaunchers), std::end(kLaunchers), [&](const Launcher& step) {
    return step.starts == Starts::steps && step.size != nullptr &&
           has_started_this(step, variables) && variables(step.rank) == variables(launcher.rank) &&
           variables(step.size) == variables(launcher.size);
  });
}

// Slurm says which process it has started: no other launcher has started that one.
bool is_started_by_slurm(const Launcher& launcher, const Variables& variables) {
  return launcher.read == from_slurm && variables("SLURM_TASK_PID") == std::to_string(::getpid());
}

// Whether `other` may have started the launcher itself, whose processes it then counts in its own
// way.
bool may_have_started(const Launcher& other, const Launcher& launcher, const Variables& variables) {
  if (is_started_by_slurm(other, variables)) return false;
  const bool is_step = is_of_step(other, variables);
  const bool is_torchrun = launcher.read == from_torchrun;
  if (is_step && (!is_torchrun || says_that_it_is_alone(other, variables))) return true;
  // torchrun itself, and not only its variables: it numbers those that were started on the hosts.
  if (!is_torchrun || !variables("GROUP_RANK")) return false;
  return is_step || (variables("GROUP_RANK") == variables(other.rank) &&
                     variables("GROUP_WORLD_SIZE") == variables(other.size));
}

// Where two launchers say different things of this process, only one of them has started it, and
// Rondo cannot know which: by the other one's variables it would join another group than the user
// meant.
void require_agreement(const Launcher& launcher, const LaunchedRank& launched,
                       const Variables& variables) {
  bool has_size = false;  // one of the others
  for (const Launcher& other : kLaunchers) {
    if (&other == &launcher || !has_started_this(other, variables)) continue;
    has_size |= other.size != nullptr;
    // A launcher without a size says nothing more than one with a size.
    if (other.size == nullptr && has_size) continue;
    if (says(other, variables, launched)) continue;
    if (may_have_started(other, launcher, variables)) continue;
    throw UsageError(fmt::format(
        "from_environment: two launchers say different things of this process: {}, and {}. Which "
        "of them started it? Unset the other's variables before ({} or {})",
        quote(launcher, variables), quote(other, variables), how_to_unset(launcher),
        how_to_unset(other)));
  }
}

// A script may give ranks their numbers and an address by the variables of one launcher, and take
// these numbers from another one, which has started the processes: then they are of that one's run,
// and another run with the same address is not.
std::string run_by_another(const Launcher& launcher, const LaunchedRank& launched,
                           const Variables& variables) {
  for (const Launcher& other : kLaunchers) {
    if (&other == &launcher || !has_started_this(other, variables)) continue;
    if (!says(other, variables, launched)) continue;
    if (other.read == from_open_mpi)
      return run_of_open_mpi(LauncherVariables(variables, other.name));
    if (other.read == from_slurm) return run_of_slurm(LauncherVariables(variables, other.name));
  }
  return {};
}

// Where no launcher is known: a script may have set some variables and forgotten others, and each
// process would work alone.
void require_all_or_none(const Variables& variables) {
  struct Half {
    std::array<const char*, 2> set;
    const char* missing;
    const char* size;  // of the two
  };
  constexpr Half kHalves[] = {{{"RONDO_SIZE", "RONDO_SIZE"}, "RONDO_RANK", "RONDO_SIZE"},
                              {{"RANK", "MASTER_ADDR"}, "WORLD_SIZE", nullptr},
                              {{"WORLD_SIZE", "MASTER_ADDR"}, "RANK", "WORLD_SIZE"}};
  for (const Half& half : kHalves) {
    if (!variables(half.set[0]) || !variables(half.set[1]) || variables(half.missing)) continue;
    if (half.size != nullptr && variables(half.size) == "1") continue;
    throw UsageError(fmt::format(
        "from_environment: {}={} is set, but {} is not: set both for each process, or unset {} for "
        "a process that is alone (env -u {} ...)",
        half.set[0], *variables(half.set[0]), half.missing, half.set[0], half.set[0]));
  }
}

}  // namespace

std::string objection_to_mpi_alone(const Variables& variables) {
  // An MPI's own launcher comes first, since another one may have started that launcher.
  for (const bool is_of_mpi : {true, false}) {
    bool is_alone = false;
    for (const Launcher& launcher : kLaunchers) {
      if (!has_started_this(launcher, variables)) continue;
      const bool is_mpi =
          launcher.starts == Starts::mpi_processes && !is_of_step(launcher, variables);
      if (is_mpi != is_of_mpi) continue;
      is_alone |= says_that_it_is_alone(launcher, variables);
      if (says_that_it_is_alone(launcher, variables)) continue;
      // A launcher that sets no size may have started this process alone, if its rank is 0.
      if (launcher.size == nullptr && (is_alone || variables(launcher.rank) == "0")) continue;
      return fmt::format(
          "MPI_COMM_WORLD has 1 rank, but a launcher started several processes ({}), each of which "
          "would work alone: {}. (MPI_COMM_SELF makes a group of this process alone, if that is "
          "meant)",
          quote(launcher, variables), launcher.cure);
    }
    if (is_alone) return {};
  }
  return {};
}

LaunchedRank launched_rank(const Variables& variables) {
  for (const Launcher& launcher : kLaunchers) {
    if (launcher.read == nullptr || !has_started_this(launcher, variables)) continue;
    LaunchedRank launched = launcher.read(LauncherVariables(variables, launcher.name));
    if (launched.size < 1 || launched.rank >= launched.size) {
      throw UsageError(fmt::format("from_environment: {} says that this is rank {} of {}",
                                   launcher.name, launched.rank, launched.size));
    }
    require_agreement(launcher, launched, variables);
    if (launched.run.empty()) launched.run = run_by_another(launcher, launched, variables);
    const auto store = variables("RONDO_STORE");
    if (store && !store->empty()) {
      launched.url = *store;
      launched.ports.clear();
    }
    // The components of a heterogeneous job of Slurm may have numbers of their own, by which their
    // runs seem to differ.
    if (launched.ports.empty() && variables("SLURM_HET_SIZE")) launched.run.clear();
    return launched;
  }
  bool is_alone = false;
  for (const Launcher& launcher : kLaunchers) {
    if (!has_started_this(launcher, variables)) continue;
    is_alone |= says_that_it_is_alone(launcher, variables);
    // A launcher that sets no size says nothing more than the one above it.
    if (says_that_it_is_alone(launcher, variables) || (is_alone && launcher.size == nullptr))
      continue;
    throw UsageError(fmt::format(
        "from_environment: the launcher of this process sets {}, and is none that Rondo knows; set "
        "RONDO_RANK, RONDO_SIZE and RONDO_STORE (tcp://HOST-OF-RANK-0:PORT) for each process",
        launcher.rank));
  }
  require_all_or_none(variables);
  return {};
}

}  // namespace rondo::detail
