// Ranks of mpirun on several hosts: rank 1 is killed between two calls. Each of the others adds a
// line to the file that is named: the error that it gets, or that MPI does not return to Rondo.
// (Not to standard output, which is lost where mpirun crashes.)
#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <rondo/mpi.hpp>
#include <rondo/rondo.hpp>

namespace {

// Calls of MPI_Testsome that have begun and ended. Written by the thread that calls it, read by the
// one that watches; they order nothing else.
std::atomic<long> calls_begun = 0;
std::atomic<long> calls_ended = 0;

void note(const char* file, const std::string& line) {
  const int to = ::open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const std::string text = line + "\n";
  [[maybe_unused]] const auto written = ::write(to, text.data(), text.size());
  ::close(to);
}

// Open MPI 4 may also crash in its own code.
const char* noted_in = nullptr;
void note_crash(int signal) {
  note(noted_in, calls_begun == calls_ended ? "crashed by signal " + std::to_string(signal)
                                            : "crashed in MPI by signal " + std::to_string(signal));
  ::_exit(1);
}

// Ends this process when one call of MPI_Testsome has taken much longer than Rondo needs to hear of
// a death.
void watch(const char* file, int rank) {
  constexpr std::chrono::seconds kTooLong{30};
  long seen = 0;
  auto since = std::chrono::steady_clock::now();
  for (;;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const auto now = std::chrono::steady_clock::now();
    const long begun = calls_begun;
    if (begun != seen || begun == calls_ended) {
      seen = begun;
      since = now;
    }
    if (now - since < kTooLong) continue;
    note(file, "kept by MPI: rank " + std::to_string(rank));
    ::_exit(1);
  }
}

}  // namespace

// In place of MPI's own, also for Rondo.
extern "C" int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices,
                            MPI_Status* statuses) {
  ++calls_begun;
  const int code = PMPI_Testsome(count, requests, done, indices, statuses);
  ++calls_ended;
  return code;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const char* file = argv[1];
  rondo::Communicator comm = rondo::from_mpi(MPI_COMM_WORLD);
  noted_in = file;
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGTERM, SIGPIPE})
    std::signal(signal, note_crash);
  std::thread(watch, file, comm.rank()).detach();
  std::vector<float> values(1U << 18U);
  try {
    for (int call = 0;; ++call) {
      if (comm.rank() == 1 && call == 20) ::raise(SIGKILL);
      comm.all_reduce(values);
    }
  } catch (const rondo::PeerError& error) {
    note(file, "PeerError: " + std::string(error.what()));
  } catch (const rondo::Error& error) {
    note(file, "another error: " + std::string(error.what()));
  }
  ::_exit(1);
}
