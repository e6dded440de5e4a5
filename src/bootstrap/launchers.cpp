#include "bootstrap/launchers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/fnv1a.hpp"

namespace rondo::detail {
namespace {

// Reads the variables of one launcher.
class Reader {
 public:
  Reader(const Variables& variables, std::string launcher)
      : variables_(variables), launcher_(std::move(launcher)) {}

  [[nodiscard]] const std::string& launcher() const { return launcher_; }
  // Nothing also if it is empty.
  [[nodiscard]] std::optional<std::string> find(const char* name) const {
    std::optional<std::string> value = variables_(name);
    return value && value->empty() ? std::nullopt : value;
  }
  [[nodiscard]] std::string text(const char* name) const {
    std::optional<std::string> value = variables_(name);
    if (!value) {
      throw UsageError(fmt::format("from_environment: {} started this process, but {} is not set",
                                   launcher_, name));
    }
    return *value;
  }
  [[nodiscard]] int number(const char* name) const {
    const std::string value = text(name);
    int result = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
    if (error != std::errc{} || end != value.data() + value.size() || result < 0) {
      throw UsageError(fmt::format(
          "from_environment: {} is '{}'; it must be a number that is not negative", name, value));
    }
    return result;
  }

  void require(std::initializer_list<const char*> names) const {
    for (const char* name : names) static_cast<void>(text(name));
  }

 private:
  const Variables& variables_;
  std::string launcher_;
};

// Ports that the system does not give to connections by itself.
constexpr int kFirstPort = 20000;
constexpr int kPorts = 12000;
// Another program, or another run, may have some of them.
constexpr int kTriedPorts = 16;

// The ports of a run, of which rank 0 takes the first that is free: so runs that have some in
// common do not get in each other's way.
std::vector<std::uint16_t> ports_for(std::string_view run) {
  const std::uint64_t hash = fnv1a(run);
  const std::uint64_t stride = 1 + (hash >> 32U) % (kPorts / kTriedPorts);
  std::vector<std::uint16_t> ports;
  for (std::uint64_t i = 0; i < kTriedPorts; ++i) {
    ports.push_back(
        static_cast<std::uint16_t>(kFirstPort + ((hash & 0xffffffffU) + i * stride) % kPorts));
  }
  return ports;
}

std::string address(const std::string& host, int port) {
  return host.find(':') == std::string::npos ? fmt::format("tcp://{}:{}", host, port)
                                             : fmt::format("tcp://[{}]:{}", host, port);
}

// Where ranks meet that are told only a host.
void meet_on(LaunchedRank& launched, const std::string& host) {
  launched.ports = ports_for(launched.run);
  launched.url = address(host, launched.ports[0]);
}

LaunchedRank from_rondo(const Reader& reader) {
  return {reader.launcher(),
          reader.number("RONDO_RANK"),
          reader.number("RONDO_SIZE"),
          reader.text("RONDO_STORE"),
          {},
          {}};
}

// At MASTER_PORT torchrun itself listens, or rank 0 of PyTorch.
LaunchedRank from_torchrun(const Reader& reader) {
  constexpr int kLastPort = 65535;
  const int port = reader.number("MASTER_PORT");
  LaunchedRank launched{reader.launcher(),
                        reader.number("RANK"),
                        reader.number("WORLD_SIZE"),
                        address(reader.text("MASTER_ADDR"), port < kLastPort ? port + 1 : port - 1),
                        {},
                        {}};
  // "none" is what torchrun says where it was told no name.
  const auto id = reader.find("TORCHELASTIC_RUN_ID");
  if (id && *id != "none") launched.run = "torchrun " + *id;
  return launched;
}

// Open MPI 5 calls a job prterun-HOST-PROCESS@NUMBER. Empty if `job` is no such name.
std::string host_in_job(std::string_view job) {
  constexpr std::string_view kStart = "prterun-";
  const std::size_t end = job.rfind('-');
  if (!job.starts_with(kStart) || end <= kStart.size()) return {};
  return std::string(job.substr(kStart.size(), end - kStart.size()));
}

// mpirun's own host, which has rank 0 unless the user gave mpirun a list of other hosts: by its
// name with Open MPI 5, by one of its addresses with Open MPI 4.
std::string host_of_mpirun(const Reader& reader) {
  if (std::string host = host_in_job(reader.text("PMIX_NAMESPACE")); !host.empty()) return host;
  const std::string uri = reader.find("OMPI_MCA_orte_hnp_uri").value_or("");
  constexpr std::string_view kTcp = "tcp://";
  const std::size_t begin = uri.find(kTcp);
  const std::size_t end = uri.find_first_of(",:", begin + kTcp.size());
  if (begin == std::string::npos || end == std::string::npos) {
    throw UsageError(
        "from_environment: this Open MPI does not say where rank 0 is; set RONDO_STORE on all "
        "ranks, to tcp://HOST-OF-RANK-0:PORT or file:///A/SHARED/FOLDER");
  }
  return uri.substr(begin + kTcp.size(), end - begin - kTcp.size());
}

std::string run_of_open_mpi(const Reader& reader) {
  const auto job = reader.find("PMIX_NAMESPACE");
  if (!job) return {};
  // Open MPI 4's number of a job is one of 65536, which two hosts may have in common.
  const auto uri = reader.find("OMPI_MCA_orte_hnp_uri");
  return fmt::format("Open MPI job {}{}{}", *job, uri ? " of " : "", uri.value_or(""));
}

LaunchedRank from_open_mpi(const Reader& reader) {
  LaunchedRank launched{reader.launcher(),
                        reader.number("OMPI_COMM_WORLD_RANK"),
                        reader.number("OMPI_COMM_WORLD_SIZE"),
                        {},
                        run_of_open_mpi(reader),
                        {}};
  if (launched.size == 1 || reader.find("RONDO_STORE")) return launched;
  reader.require({"PMIX_NAMESPACE"});
  const bool one_host = reader.number("OMPI_COMM_WORLD_LOCAL_SIZE") == launched.size;
  meet_on(launched, one_host ? "localhost" : host_of_mpirun(reader));
  return launched;
}

std::string run_of_slurm(const Reader& reader) {
  const auto job = reader.find("SLURM_JOB_ID");
  const auto step = reader.find("SLURM_STEP_ID");
  if (!job || !step) return {};
  const auto cluster = reader.find("SLURM_CLUSTER_NAME");
  return fmt::format("Slurm step {}.{}{}{}", *job, *step, cluster ? " of " : "",
                     cluster.value_or(""));
}

LaunchedRank from_slurm(const Reader& reader) {
  LaunchedRank launched{reader.launcher(),
                        reader.number("SLURM_PROCID"),
                        reader.number("SLURM_STEP_NUM_TASKS"),
                        {},
                        run_of_slurm(reader),
                        {}};
  if (launched.size == 1 || reader.find("RONDO_STORE")) return launched;
  reader.require({"SLURM_JOB_ID", "SLURM_STEP_ID"});
  const bool one_host = reader.number("SLURM_STEP_NUM_NODES") == 1;
  const std::string first = first_of_slurm_hosts(reader.text("SLURM_STEP_NODELIST"));
  meet_on(launched, one_host ? "localhost" : first);
  return launched;
}

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
  LaunchedRank (*read)(const Reader&);  // null: Rondo cannot join its processes
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
    // Of many launchers; where another one above is known by its own variables, these say nothing
    // more.
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
  bool tells_size = false;  // one of the others
  for (const Launcher& other : kLaunchers) {
    if (&other == &launcher || !has_started_this(other, variables)) continue;
    tells_size |= other.size != nullptr;
    // It says nothing more than the one that tells a size.
    if (other.size == nullptr && tells_size) continue;
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
    if (other.read == from_open_mpi) return run_of_open_mpi(Reader(variables, other.name));
    if (other.read == from_slurm) return run_of_slurm(Reader(variables, other.name));
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

std::string first_of_slurm_hosts(const std::string& list) {
  std::string first;
  for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
    if (list[i] != '[') {
      first += list[i];
      continue;
    }
    const std::size_t close = list.find(']', i);
    if (close == std::string::npos) break;
    first += list.substr(i + 1, list.find_first_of("-,]", i) - i - 1);
    i = close;
  }
  return first;
}

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
      // One that tells no size may have started this process alone if it is the first.
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
    LaunchedRank launched = launcher.read(Reader(variables, launcher.name));
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
    // One that tells no size says nothing more than the one above it.
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
