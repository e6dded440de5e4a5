#include "bootstrap/mpi_link_probe.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <vector>

#include "bootstrap/mpi_bootstrap.hpp"

namespace rondo::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPingTag = 0;
constexpr int kPongTag = 1;
constexpr int kBurstTag = 2;
constexpr int kPings = 10;
// 1 MiB: more than network adapters and shapers let through at once, and 9 ms at 1 Gbit/s.
constexpr int kMessages = 32;
constexpr int kMessageBytes = 32 * 1024;

double us_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// Pings travel along all links at once.
double latency_us(MPI_Comm comm, int next, int prev) {
  double shortest = std::numeric_limits<double>::max();
  for (int ping = 0; ping < kPings; ++ping) {
    const auto start = Clock::now();
    char byte = 0;
    MPI_Request sent = MPI_REQUEST_NULL;
    if (next != kNoLink) {
      check_mpi(MPI_Isend(&byte, 1, MPI_BYTE, next, kPingTag, comm, &sent), "MPI_Isend", next);
    }
    if (prev != kNoLink) {
      char echo = 0;
      check_mpi(MPI_Recv(&echo, 1, MPI_BYTE, prev, kPingTag, comm, MPI_STATUS_IGNORE), "MPI_Recv",
                prev);
      check_mpi(MPI_Send(&echo, 1, MPI_BYTE, prev, kPongTag, comm), "MPI_Send", prev);
    }
    if (next != kNoLink) {
      char answer = 0;
      check_mpi(MPI_Recv(&answer, 1, MPI_BYTE, next, kPongTag, comm, MPI_STATUS_IGNORE), "MPI_Recv",
                next);
      check_mpi(MPI_Wait(&sent, MPI_STATUS_IGNORE), "MPI_Wait", next);
    }
    shortest = std::min(shortest, us_since(start));
  }
  return next == kNoLink ? 0 : shortest / 2;
}

// Bursts travel along all links at once, as slices do. Timed from the first message on, which tells when the
// other side began.
double bytes_per_us(MPI_Comm comm, int next, int prev) {
  std::vector<std::byte> out(kMessageBytes);
  std::vector<std::byte> in(kMessageBytes);
  std::array<MPI_Request, kMessages> sent{};
  sent.fill(MPI_REQUEST_NULL);
  if (next != kNoLink) {
    for (MPI_Request& request : sent) {
      check_mpi(MPI_Isend(out.data(), kMessageBytes, MPI_BYTE, next, kBurstTag, comm, &request),
                "MPI_Isend", next);
    }
  }
  Clock::time_point first{};
  if (prev != kNoLink) {
    for (int message = 0; message < kMessages; ++message) {
      check_mpi(
          MPI_Recv(in.data(), kMessageBytes, MPI_BYTE, prev, kBurstTag, comm, MPI_STATUS_IGNORE),
          "MPI_Recv", prev);
      if (message == 0) first = Clock::now();
    }
  }
  const double us = us_since(first);
  check_mpi(MPI_Waitall(kMessages, sent.data(), MPI_STATUSES_IGNORE), "MPI_Waitall", next);
  return prev == kNoLink ? 0 : (kMessages - 1.0) * kMessageBytes / std::max(us, 1.0);
}

}  // namespace

LinkFacts probe_links(MPI_Comm comm, int next, int prev) {
  const double latency = latency_us(comm, next, prev);
  return {latency, bytes_per_us(comm, next, prev)};
}

}  // namespace rondo::detail
