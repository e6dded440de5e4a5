// What launchers tell the processes that they start.

#include <unistd.h>

#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <rondo/errors.hpp>

#include "bootstrap/launcher_variables.hpp"
#include "bootstrap/launchers.hpp"

namespace rondo::detail {
namespace {

using Map = std::map<std::string, std::string>;

Variables variables_of(const Map& set) {
  return [set](const char* name) -> std::optional<std::string> {
    const auto found = set.find(name);
    return found == set.end() ? std::nullopt : std::optional(found->second);
  };
}

LaunchedRank read(const Map& set) { return launched_rank(variables_of(set)); }

void expect(const Map& set, const std::string& launcher, int rank, int size,
            const std::string& url) {
  const LaunchedRank launched = read(set);
  EXPECT_EQ(launched.launcher, launcher);
  EXPECT_EQ(launched.rank, rank);
  EXPECT_EQ(launched.size, size);
  EXPECT_EQ(launched.url, url);
}

void expect_error(const Map& set, const std::string& part) {
  try {
    read(set);
    ADD_FAILURE() << "no error: " << part;
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

Map with(Map set, const Map& more) {
  for (const auto& [name, value] : more) set[name] = value;
  return set;
}

const Map kRondo = {{"RONDO_RANK", "3"}, {"RONDO_SIZE", "8"}, {"RONDO_STORE", "tcp://a:1"}};
const Map kTorchrun = {
    {"RANK", "1"}, {"WORLD_SIZE", "4"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29500"}};
const Map kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                      {"OMPI_COMM_WORLD_SIZE", "4"},
                      {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                      {"PMIX_NAMESPACE", "1590165505"},
                      {"PMIX_RANK", "2"}};
const Map kSlurm = {{"SLURM_STEP_ID", "0"},
                    {"SLURM_PROCID", "5"},
                    {"SLURM_STEP_NUM_TASKS", "6"},
                    {"SLURM_STEP_NUM_NODES", "3"},
                    {"SLURM_STEP_NODELIST", "n[2-4]"},
                    {"SLURM_JOB_ID", "77"}};

const Map kOthers[] = {{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}},
                       {{"MV2_COMM_WORLD_RANK", "1"}, {"MV2_COMM_WORLD_SIZE", "2"}},
                       {{"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "2"}}};

TEST(Launchers, SayRankSizeAndAddress) {
  expect({}, "", 0, 1, "");
  expect(kRondo, "rondo-launch", 3, 8, "tcp://a:1");
  expect(kTorchrun, "torchrun", 1, 4, "tcp://node1:29501");
  expect(with(kTorchrun, {{"MASTER_ADDR", "fd00::1"}, {"MASTER_PORT", "65535"}}), "torchrun", 1, 4,
         "tcp://[fd00::1]:65534");
  expect(with(kTorchrun, {{"RONDO_STORE", "file:///x"}}), "torchrun", 1, 4, "file:///x");
  EXPECT_EQ(read(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "r7"}})).run, "torchrun r7");
  EXPECT_EQ(read(with(kTorchrun, {{"TORCHELASTIC_RUN_ID", "none"}})).run, "");
  // Also where the address is given: two jobs may be given the same one.
  EXPECT_EQ(read(with(kSlurm, {{"RONDO_STORE", "tcp://a:1"}})).run, "Slurm step 77.0");
  EXPECT_EQ(read(with(kSlurm, {{"RONDO_STORE", "tcp://a:1"}, {"SLURM_HET_SIZE", "2"}})).run, "");
  EXPECT_EQ(read(with(kOpenMpi, {{"RONDO_STORE", "tcp://a:1"}})).run, "Open MPI job 1590165505");
  EXPECT_TRUE(read(with(kSlurm, {{"RONDO_STORE", "tcp://a:1"}})).ports.empty());
  // As scripts for PyTorch under Slurm have it.
  const Map exported = {{"WORLD_SIZE", "6"}, {"MASTER_ADDR", "n2"}, {"MASTER_PORT", "29500"}};
  EXPECT_EQ(read(with(kSlurm, exported)).launcher, "Slurm");
  // A batch script of Slurm is no step: what runs in it was not started by srun.
  expect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "6"}, {"SLURM_JOB_ID", "77"}}, "", 0, 1, "");
}

// Slurm gives its variables to all that runs in a step; torchrun may be started on each host by
// another launcher.
TEST(Launchers, TheOneThatStartedTheProcessLastCounts) {
  const Map torchrun = with(kTorchrun, {{"GROUP_RANK", "5"}, {"GROUP_WORLD_SIZE", "6"}});
  expect(with(kSlurm, kRondo), "rondo-launch", 3, 8, "tcp://a:1");
  expect(with(kSlurm, torchrun), "torchrun", 1, 4, "tcp://node1:29501");
  EXPECT_EQ(read(with(kSlurm, kOpenMpi)).launcher, "Open MPI");
  const Map by_mpirun = {{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "6"}};
  expect(with(torchrun, by_mpirun), "torchrun", 1, 4, "tcp://node1:29501");
  // A batch system that exports what PyTorch reads.
  expect(with(kSlurm, with(kTorchrun, {{"RANK", "5"}, {"WORLD_SIZE", "6"}})), "torchrun", 5, 6,
         "tcp://node1:29501");
  const Map alone = {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}};
  expect(with(with(kSlurm, alone), kTorchrun), "torchrun", 1, 4, "tcp://node1:29501");
}

// A script gives each process of srun the variables of another launcher: two such jobs with one
// address are two runs.
TEST(Launchers, WhoseVariablesAScriptSetsLeaveTheRunToTheOneThatStartedTheProcess) {
  const Map torchrun = with(kTorchrun, {{"RANK", "5"}, {"WORLD_SIZE", "6"}});
  const Map rondo = with(kRondo, {{"RONDO_RANK", "5"}, {"RONDO_SIZE", "6"}});
  EXPECT_EQ(read(with(kSlurm, torchrun)).run, "Slurm step 77.0");
  EXPECT_EQ(read(with(kSlurm, rondo)).run, "Slurm step 77.0");
  EXPECT_EQ(read(with(kSlurm, with(torchrun, {{"SLURM_HET_SIZE", "2"}}))).run, "");
  EXPECT_EQ(read(with(kSlurm, with(torchrun, {{"TORCHELASTIC_RUN_ID", "r7"}}))).run, "torchrun r7");
  // rondo-launch in a step of Slurm has a run of its own.
  EXPECT_EQ(read(with(kSlurm, kRondo)).run, "");
  EXPECT_EQ(read(kRondo).run, "");
}

TEST(Launchers, OfWhichOnlyAPartIsSetAreRefused) {
  expect_error({{"RONDO_SIZE", "4"}, {"RONDO_STORE", "tcp://a:1"}}, "RONDO_RANK is not");
  expect_error({{"RANK", "0"}, {"MASTER_ADDR", "a"}}, "WORLD_SIZE is not");
  expect_error({{"WORLD_SIZE", "6"}, {"MASTER_ADDR", "n2"}, {"MASTER_PORT", "29500"}},
               "RANK is not");
  // Of a process alone, or of another program.
  expect({{"RONDO_SIZE", "1"}}, "", 0, 1, "");
  expect({{"RONDO_STORE", "tcp://a:1"}}, "", 0, 1, "");
  expect({{"WORLD_SIZE", "1"}, {"MASTER_ADDR", "n2"}}, "", 0, 1, "");
  expect({{"WORLD_SIZE", "6"}}, "", 0, 1, "");
  expect({{"RANK", "3"}}, "", 0, 1, "");
}

TEST(Launchers, ThatContradictEachOtherAreQuoted) {
  const Map outer = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  const std::string torchrun = "RANK=0 and WORLD_SIZE=1 by torchrun";
  const auto expect_both = [](const Map& set, const std::string& one, const std::string& other) {
    expect_error(set, one);
    expect_error(set, other);
    expect_error(set, "env -u ");
  };
  expect_both(with(kOpenMpi, outer), torchrun,
              "OMPI_COMM_WORLD_RANK=2 and OMPI_COMM_WORLD_SIZE=4 by Open MPI");
  expect_both(with(kSlurm, outer), torchrun, "SLURM_PROCID=5 and SLURM_STEP_NUM_TASKS=6 by Slurm");
  expect_both(with(kRondo, outer), torchrun, "RONDO_RANK=3 and RONDO_SIZE=8 by rondo-launch");
  expect_both(with(kRondo, kOpenMpi), "by rondo-launch", "by Open MPI");
  expect_both(with(outer, {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}), torchrun,
              "PMI_RANK=1 and PMI_SIZE=2 by mpiexec");
  // The same size is not enough.
  expect_error(with(kOpenMpi, kTorchrun), "two launchers");
  // torchrun on each host, started by another number of processes than it says.
  expect_error(with(with(kOpenMpi, kTorchrun), {{"GROUP_RANK", "1"}, {"GROUP_WORLD_SIZE", "4"}}),
               "two launchers");
}

// A process of several that takes itself to be alone by variables that it has inherited.
TEST(Launchers, ThatStartedSeveralContradictOneThatStartedOne) {
  const Map alone = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  const Map torchrun = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "1"}};
  const Map rondo = {{"RONDO_RANK", "0"}, {"RONDO_SIZE", "1"}, {"RONDO_STORE", "tcp://a:1"}};
  const Map by_slurm = with(kSlurm, {{"SLURM_TASK_PID", std::to_string(::getpid())}});
  for (const Map& outer : {alone, torchrun, rondo}) {
    expect_error(with(by_slurm, outer), "two launchers");
    for (const Map& other : kOthers) expect_error(with(outer, other), "two launchers");
    // All of them are alone.
    const Map slurm_alone = with(by_slurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}});
    EXPECT_EQ(read(with(slurm_alone, outer)).size, 1);
  }
}

// What runs in a step of a batch system may be started by another launcher, which counts its own
// processes.
TEST(Launchers, InAStepOfABatchSystemMayBeOthers) {
  const Map alone = {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}};
  const Map slurm_with_pmi =
      with(kSlurm, {{"SLURM_TASK_PID", "1"}, {"PMI_RANK", "5"}, {"PMI_SIZE", "6"}});
  const Map flux = {
      {"FLUX_TASK_RANK", "5"}, {"FLUX_JOB_SIZE", "6"}, {"PMI_RANK", "5"}, {"PMI_SIZE", "6"}};
  const Map jsrun = {{"JSM_NAMESPACE_RANK", "1"},
                     {"JSM_NAMESPACE_SIZE", "2"},
                     {"OMPI_COMM_WORLD_RANK", "1"},
                     {"OMPI_COMM_WORLD_SIZE", "2"}};
  const Map torchrun = with(kTorchrun, {{"GROUP_RANK", "0"}, {"GROUP_WORLD_SIZE", "2"}});
  for (const Map& step : {slurm_with_pmi, flux}) {
    EXPECT_EQ(read(with(step, alone)).size, 1);
    EXPECT_EQ(read(with(step, kOpenMpi)).launcher, "Open MPI");
    EXPECT_EQ(objection_to_mpi_alone(variables_of(with(step, alone))), "");
  }
  for (const Map& step : {slurm_with_pmi, flux, jsrun}) {
    expect(with(step, kRondo), "rondo-launch", 3, 8, "tcp://a:1");
    expect(with(step, torchrun), "torchrun", 1, 4, "tcp://node1:29501");
  }
  // A script that sets what torchrun does, in a step of one task.
  const Map one = {
      {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "1"}};
  expect(with(with(slurm_with_pmi, one), kTorchrun), "torchrun", 1, 4, "tcp://node1:29501");
}

TEST(Launchers, WhomRondoDoesNotKnowAreNamed) {
  expect_error({{"JSM_NAMESPACE_RANK", "1"}, {"JSM_NAMESPACE_SIZE", "2"}}, "JSM_NAMESPACE_RANK");
  expect_error({{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "2"}}, "FLUX_TASK_RANK");
  // One of them alone says nothing of the others.
  expect_error({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}, {"HOROVOD_RANK", "1"}, {"HOROVOD_SIZE", "4"}},
               "HOROVOD_RANK");
  for (const Map& other : kOthers) {
    expect_error(other, "is none that Rondo knows");
    Map alone = other;
    for (auto& [name, value] : alone) value = name.ends_with("SIZE") ? "1" : "0";
    expect(alone, "", 0, 1, "");
  }
  expect_error({{"PALS_RANKID", "0"}}, "PALS_RANKID");
}

TEST(Launchers, AnEmptyVariableIsNamed) {
  expect_error(with(kTorchrun, {{"RANK", ""}}), "RANK is ''");
  expect_error(with(kRondo, {{"RONDO_SIZE", ""}}), "RONDO_SIZE is ''");
  expect_error(with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", ""}}), "OMPI_COMM_WORLD_SIZE is ''");
  expect(with(kTorchrun, {{"RONDO_STORE", ""}}), "torchrun", 1, 4, "tcp://node1:29501");
}

int port_of(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }

TEST(Launchers, RanksOfAJobComputeTheSamePortAndOtherJobsAnother) {
  const LaunchedRank here = read(kSlurm);
  EXPECT_EQ(here.url, read(with(kSlurm, {{"SLURM_PROCID", "0"}})).url);
  EXPECT_NE(here.url, read(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).url);
  EXPECT_NE(here.url, read(with(kSlurm, {{"SLURM_JOB_ID", "78"}})).url);
  EXPECT_EQ(here.url.substr(0, 9), "tcp://n2:");
  EXPECT_EQ(here.run, "Slurm step 77.0");
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_CLUSTER_NAME", "blue"}})).run, "Slurm step 77.0 of blue");
  const std::set<std::uint16_t> ports(here.ports.begin(), here.ports.end());
  EXPECT_EQ(ports.size(), 16U);
  EXPECT_EQ(here.ports[0], port_of(here.url));
  for (const int port : ports) EXPECT_TRUE(port >= 20000 && port < 32000) << port;
  EXPECT_GE(port_of(here.url), 20000);
  EXPECT_LT(port_of(here.url), 32000);
  EXPECT_EQ(read(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}})).url.substr(0, 16),
            "tcp://localhost:");
}

TEST(Launchers, OpenMpiIsAtItsOwnHost) {
  EXPECT_EQ(read(kOpenMpi).url.substr(0, 16), "tcp://localhost:");
  const Map two_hosts = with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const Map with_uri =
      with(two_hosts,
           {{"OMPI_MCA_orte_hnp_uri", "15.0;tcp://10.77.0.1,192.168.1.1:56267;tcp6://[::]:1"}});
  EXPECT_EQ(read(with_uri).url.substr(0, 16), "tcp://10.77.0.1:");
  EXPECT_EQ(
      read(with(two_hosts, {{"OMPI_MCA_orte_hnp_uri", "15.0;tcp://10.0.0.9:5"}})).url.substr(0, 15),
      "tcp://10.0.0.9:");
  // Open MPI 5.
  const auto in_job = [&](const char* job) {
    return read(with(two_hosts, {{"PMIX_NAMESPACE", job}})).url;
  };
  EXPECT_EQ(in_job("prterun-h0-279964@1").substr(0, 9), "tcp://h0:");
  EXPECT_EQ(in_job("prterun-gpu-node-7-12@1").substr(0, 17), "tcp://gpu-node-7:");
  expect_error(with(two_hosts, {{"PMIX_NAMESPACE", "prterun-12@1"}}), "RONDO_STORE");
  expect_error(two_hosts, "RONDO_STORE");
  expect_error(with(two_hosts, {{"OMPI_MCA_orte_hnp_uri", "nonsense"}}), "RONDO_STORE");
  expect(with(two_hosts, {{"RONDO_STORE", "file:///x"}}), "Open MPI", 2, 4, "file:///x");
}

TEST(Launchers, TheFirstHostOfASlurmList) {
  EXPECT_EQ(first_of_slurm_hosts("alone"), "alone");
  EXPECT_EQ(first_of_slurm_hosts("a,b"), "a");
  EXPECT_EQ(first_of_slurm_hosts("gpu[03-05,9],login"), "gpu03");
  EXPECT_EQ(first_of_slurm_hosts("gpu[7,9]"), "gpu7");
  EXPECT_EQ(first_of_slurm_hosts("r[1-2]n[08-10].x,y"), "r1n08.x");
  EXPECT_EQ(first_of_slurm_hosts("broken[1-2"), "broken");
}

TEST(Launchers, SayWhichVariableIsWrong) {
  for (const char* name : {"RONDO_SIZE", "RONDO_STORE"}) {
    Map set = kRondo;
    set.erase(name);
    expect_error(set, std::string(name) + " is not set");
  }
  for (const char* wrong : {"x", "-1", "3x", "99999999999"}) {
    expect_error(with(kTorchrun, {{"RANK", wrong}}), std::string("RANK is '") + wrong);
  }
  expect_error(with(kTorchrun, {{"RANK", "4"}}), "torchrun says that this is rank 4 of 4");
  expect_error(with(kRondo, {{"RONDO_SIZE", "0"}}), "rank 3 of 0");
  expect_error({{"PMI_RANK", "1"}}, "sets PMI_RANK");
}

TEST(Launchers, ProcessesThatMpiDoesNotSee) {
  const auto objection = [](const Map& set) { return objection_to_mpi_alone(variables_of(set)); };
  const auto expect_in = [](const std::string& part, const std::string& text) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect_in("RONDO_SIZE=8 by rondo-launch", objection(kRondo));
  expect_in("WORLD_SIZE=4 by torchrun", objection(kTorchrun));
  expect_in("OMPI_COMM_WORLD_SIZE=4 by Open MPI", objection(kOpenMpi));
  expect_in("SLURM_STEP_NUM_TASKS=6 by Slurm", objection(kSlurm));
  expect_in("PMI_SIZE=2 by mpiexec", objection({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}));
  for (const Map& other : kOthers) EXPECT_NE(objection(other), "");
  expect_in("(PMIX_RANK=1 by PMIx)", objection({{"PMIX_RANK", "1"}}));
  EXPECT_EQ(objection({{"PMIX_RANK", "0"}}), "");  // of how many?
  const Map pmi_alone = {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}};
  expect_in("MV2_COMM_WORLD_SIZE=2", objection(with(kOthers[1], pmi_alone)));
  EXPECT_EQ(objection({}), "");
  EXPECT_EQ(objection({{"WORLD_SIZE", "4"}}), "");
  EXPECT_EQ(objection(with(kRondo, {{"RONDO_SIZE", "1"}})), "");
  // mpirun -n 1 below another launcher.
  EXPECT_EQ(objection(with(kSlurm, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}})),
            "");
  EXPECT_EQ(objection(with(kTorchrun, {{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})), "");
}

}  // namespace
}  // namespace rondo::detail
