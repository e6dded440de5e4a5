#include "bootstrap/launcher_variables.hpp"

#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <rondo/errors.hpp>

#include "base/fnv1a.hpp"

namespace rondo::detail {
namespace {

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

// Sets the address of ranks that know only the host where they meet.
void meet_on(LaunchedRank& launched, const std::string& host) {
  launched.ports = ports_for(launched.run);
  launched.url = address(host, launched.ports[0]);
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
std::string host_of_mpirun(const LauncherVariables& variables) {
  if (std::string host = host_in_job(variables.text("PMIX_NAMESPACE")); !host.empty()) return host;
  const std::string uri = variables.find("OMPI_MCA_orte_hnp_uri").value_or("");
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

}  // namespace

std::optional<std::string> LauncherVariables::find(const char* name) const {
  std::optional<std::string> value = variables_(name);
  return value && value->empty() ? std::nullopt : value;
}

std::string LauncherVariables::text(const char* name) const {
  std::optional<std::string> value = variables_(name);
  if (!value) {
    throw UsageError(fmt::format("from_environment: {} started this process, but {} is not set",
                                 launcher_, name));
  }
  return *value;
}

int LauncherVariables::number(const char* name) const {
  const std::string value = text(name);
  int result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc{} || end != value.data() + value.size() || result < 0) {
    throw UsageError(fmt::format(
        "from_environment: {} is '{}'; it must be a number that is not negative", name, value));
  }
  return result;
}

void LauncherVariables::require(std::initializer_list<const char*> names) const {
  for (const char* name : names) static_cast<void>(text(name));
}

LaunchedRank from_rondo(const LauncherVariables& variables) {
  return {variables.launcher(),
          variables.number("RONDO_RANK"),
          variables.number("RONDO_SIZE"),
          variables.text("RONDO_STORE"),
          {},
          {}};
}

// torchrun itself listens at MASTER_PORT, or rank 0 of PyTorch.
LaunchedRank from_torchrun(const LauncherVariables& variables) {
  constexpr int kLastPort = 65535;
  const int port = variables.number("MASTER_PORT");
  LaunchedRank launched{
      variables.launcher(),
      variables.number("RANK"),
      variables.number("WORLD_SIZE"),
      address(variables.text("MASTER_ADDR"), port < kLastPort ? port + 1 : port - 1),
      {},
      {}};
  // torchrun sets "none" where its user has given no name.
  const auto id = variables.find("TORCHELASTIC_RUN_ID");
  if (id && *id != "none") launched.run = "torchrun " + *id;
  return launched;
}

std::string run_of_open_mpi(const LauncherVariables& variables) {
  const auto job = variables.find("PMIX_NAMESPACE");
  if (!job) return {};
  // Open MPI 4's number of a job is one of 65536, which two hosts may have in common.
  const auto uri = variables.find("OMPI_MCA_orte_hnp_uri");
  return fmt::format("Open MPI job {}{}{}", *job, uri ? " of " : "", uri.value_or(""));
}

LaunchedRank from_open_mpi(const LauncherVariables& variables) {
  LaunchedRank launched{variables.launcher(),
                        variables.number("OMPI_COMM_WORLD_RANK"),
                        variables.number("OMPI_COMM_WORLD_SIZE"),
                        {},
                        run_of_open_mpi(variables),
                        {}};
  if (launched.size == 1 || variables.find("RONDO_STORE")) return launched;
  variables.require({"PMIX_NAMESPACE"});
  const bool one_host = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE") == launched.size;
  meet_on(launched, one_host ? "localhost" : host_of_mpirun(variables));
  return launched;
}

std::string run_of_slurm(const LauncherVariables& variables) {
  const auto job = variables.find("SLURM_JOB_ID");
  const auto step = variables.find("SLURM_STEP_ID");
  if (!job || !step) return {};
  const auto cluster = variables.find("SLURM_CLUSTER_NAME");
  return fmt::format("Slurm step {}.{}{}{}", *job, *step, cluster ? " of " : "",
                     cluster.value_or(""));
}

LaunchedRank from_slurm(const LauncherVariables& variables) {
  LaunchedRank launched{variables.launcher(),
                        variables.number("SLURM_PROCID"),
                        variables.number("SLURM_STEP_NUM_TASKS"),
                        {},
                        run_of_slurm(variables),
                        {}};
  if (launched.size == 1 || variables.find("RONDO_STORE")) return launched;
  variables.require({"SLURM_JOB_ID", "SLURM_STEP_ID"});
  const bool one_host = variables.number("SLURM_STEP_NUM_NODES") == 1;
  const std::string first = first_of_slurm_hosts(variables.text("SLURM_STEP_NODELIST"));
  meet_on(launched, one_host ? "localhost" : first);
  return launched;
}

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

}  // namespace rondo::detail
